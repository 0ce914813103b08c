// fuel-exhausted
kernel void steps_to_a_sum(float step, global float *y) {
    float at = 0.0f;
    while (at != 1.0f)
        at += step;
    y[get_global_id(0)] = at;
}
