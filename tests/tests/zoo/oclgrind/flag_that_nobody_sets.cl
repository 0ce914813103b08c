// livelock
kernel void flag_that_nobody_sets(global uint *flag, global float *y) {
    while (atomic_or(flag, 0) == 0)
        ;
    y[get_global_id(0)] = 1.0f;
}
