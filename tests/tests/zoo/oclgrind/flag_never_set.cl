// livelock
kernel void flag_never_set(global uint *flag, global float *y) {
    while (atomic_or(flag, 0) == 0)
        ;
    y[get_global_id(0)] = 1.0f;
}
