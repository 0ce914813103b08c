// store-conflict
kernel void keys_that_repeat(global const uint *keys, global uint *y) {
    uint t = get_global_id(0);
    y[keys[t] / 2] = t;
}
