// no bug: the twin of last_block_without_fence
kernel void last_block_with_fences(global const float *x, global float *partial, global uint *done, global float *total) {
    uint b = get_group_id(0), blocks = get_num_groups(0);
    partial[b] = x[b];
    mem_fence(CLK_GLOBAL_MEM_FENCE);
    if (atomic_add(done, 1) == blocks - 1) {
        mem_fence(CLK_GLOBAL_MEM_FENCE);
        float all = 0.0f;
        for (uint k = 0; k < blocks; k++)
            all += partial[k];
        total[0] = all;
    }
}
