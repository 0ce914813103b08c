// Linear algebra, stencils, transforms, simulations.

extern "C" __global__ void saxpy(int n, float a, const float* __restrict__ x, float* y) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = fmaf(a, x[i], y[i]);
}

extern "C" __global__ void matmul(const float* a, const float* b, float* c, int n) {
    __shared__ float ta[16][17], tb[16][17];
    int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
    float sum = 0.0f;
    for (int k = 0; k < n; k += 16) {
        ta[threadIdx.y][threadIdx.x] = row < n && k + threadIdx.x < n ? a[row * n + k + threadIdx.x] : 0.0f;
        tb[threadIdx.y][threadIdx.x] = k + threadIdx.y < n && col < n ? b[(k + threadIdx.y) * n + col] : 0.0f;
        __syncthreads();
        for (int i = 0; i < 16; i++) sum += ta[threadIdx.y][i] * tb[i][threadIdx.x];
        __syncthreads();
    }
    if (row < n && col < n) c[row * n + col] = sum;
}

extern "C" __global__ void stencil(const double* x, double* y, int w, int h) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < 1 || j < 1 || i >= w - 1 || j >= h - 1) return;
    y[j * w + i] = 0.5 * x[j * w + i] + 0.125 * (x[j * w + i - 1] + x[j * w + i + 1] + x[(j - 1) * w + i] + x[(j + 1) * w + i]);
}

extern "C" __global__ void spmv(int rows, const int* start, const int* column, const float* value, const float* x, float* y) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    float sum = 0.0f;
    for (int k = start[r]; k < start[r + 1]; k++) sum += value[k] * x[column[k]];
    y[r] = sum;
}

struct Complex { float re, im; };

extern "C" __global__ void fft64(const Complex* x, Complex* y) {
    __shared__ Complex s[64];
    unsigned t = threadIdx.x;
    s[__brev(t) >> 26] = x[blockIdx.x * 64 + t];
    for (int half = 1; half < 64; half *= 2) {
        __syncthreads();
        if (t < 32) {
            int k = t % half, i = t / half * half * 2 + k;
            float sn, cs;
            sincosf(-3.14159265358979f * k / half, &sn, &cs);
            Complex a = s[i], b = s[i + half];
            float re = b.re * cs - b.im * sn, im = b.re * sn + b.im * cs;
            s[i] = {a.re + re, a.im + im};
            s[i + half] = {a.re - re, a.im - im};
        }
    }
    __syncthreads();
    y[blockIdx.x * 64 + t] = s[t];
}

extern "C" __global__ void attention(const float* q, const float* k, const float* v, float* o, int n, int d) {
    extern __shared__ float score[];
    int row = blockIdx.x, t = threadIdx.x;
    for (int j = t; j < n; j += blockDim.x) {
        float dot = 0.0f;
        for (int i = 0; i < d; i++) dot += q[row * d + i] * k[j * d + i];
        score[j] = dot * rsqrtf((float)d);
    }
    __syncthreads();
    float top = -3.402823466e38f, sum = 0.0f;
    for (int j = 0; j < n; j++) top = fmaxf(top, score[j]);
    for (int j = 0; j < n; j++) sum += expf(score[j] - top);
    for (int i = t; i < d; i += blockDim.x) {
        float out = 0.0f;
        for (int j = 0; j < n; j++) out += expf(score[j] - top) * v[j * d + i];
        o[row * d + i] = out / sum;
    }
}

extern "C" __global__ void quantized(const int* a, const int* b, const float* scale, float* y, int words) {
    int row = blockIdx.x * blockDim.x + threadIdx.x, sum = 0;
    for (int k = 0; k < words; k++) sum = __dp4a(a[row * words + k], b[k], sum);
    y[row] = scale[row] * (float)sum;
}

extern "C" __global__ void bodies(const float4* p, float4* f, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 me = p[i], sum = make_float4(0, 0, 0, 0);
    for (int j = 0; j < n; j++) {
        float4 other = p[j];
        float x = other.x - me.x, y = other.y - me.y, z = other.z - me.z;
        float r = rsqrtf(x * x + y * y + z * z + 0.01f), w = other.w * r * r * r;
        sum.x += w * x; sum.y += w * y; sum.z += w * z;
    }
    f[i] = sum;
}

extern "C" __global__ void mandelbrot(int* y, int w, int h, int most) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= w || j >= h) return;
    double cr = -2.0 + 3.0 * i / w, ci = -1.5 + 3.0 * j / h, zr = 0, zi = 0;
    int n = 0;
    while (n < most && __dadd_rn(__dmul_rn(zr, zr), __dmul_rn(zi, zi)) <= 4.0) {
        double t = __dadd_rn(__dsub_rn(__dmul_rn(zr, zr), __dmul_rn(zi, zi)), cr);
        zi = __dadd_rn(__dmul_rn(2.0 * zr, zi), ci);
        zr = t;
        n++;
    }
    y[j * w + i] = n;
}

extern "C" __global__ void kahan(const float* x, float* y, int n) {
    float sum = 0.0f, rest = 0.0f;
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        float next = __fsub_rn(x[i], rest), total = __fadd_rn(sum, next);
        rest = __fsub_rn(__fsub_rn(total, sum), next);
        sum = total;
    }
    y[threadIdx.x] = sum;
}

extern "C" __global__ void directed(const float* a, const float* b, float* y, int n) {
    int i = threadIdx.x;
    if (i >= n) return;
    y[8 * i + 0] = __fadd_rd(a[i], b[i]);
    y[8 * i + 1] = __fadd_ru(a[i], b[i]);
    y[8 * i + 2] = __fmul_rz(a[i], b[i]);
    y[8 * i + 3] = __fmul_ru(a[i], b[i]);
    y[8 * i + 4] = __fdiv_rd(a[i], b[i]);
    y[8 * i + 5] = __fdiv_ru(a[i], b[i]);
    y[8 * i + 6] = __fsqrt_rd(fabsf(a[i]));
    y[8 * i + 7] = __fmaf_rz(a[i], b[i], a[i]);
}
