// misaligned
kernel void behind_a_header(uint header, global const float *x, global float *y) {
    uint t = get_global_id(0);
    float4 v = *(global const float4 *)(x + header + 4 * t);
    y[t] = v.x;
}
