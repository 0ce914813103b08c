// global-race
kernel void in_place_across_blocks(uint n, global float *y) {
    uint i = get_global_id(0);
    uint next = min(i + 1, n - 1);
    float mean = 0.5f * (y[i] + y[next]);
    barrier(CLK_GLOBAL_MEM_FENCE);
    y[i] = mean;
}
