// global-race
kernel void plain_sum_of_blocks(global const float *x, global float *total) {
    if (get_local_id(0) == 0)
        total[0] += x[get_group_id(0)];
}
