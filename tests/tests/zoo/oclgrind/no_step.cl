// loop-step
kernel void no_step(uint step, global const float *x, global float *y) {
    float sum = 0.0f;
    for (uint i = 0; i < 32; i += step)
        sum += x[i];
    y[get_global_id(0)] = sum;
}
