// The forms of PTX that NVRTC writes: functions and calls, structures by value, function pointers,
// tables, switches, local arrays, printf, inline assembly, each kind of memory.
struct Pair { float x; int y[4]; double z; };
typedef float (*Map)(float);

__constant__ float weights[8] = {1.f, 2.f, 3.5f, -4.f, 0.f, 1e-30f, 1e30f, 7.f};
__device__ int counter;
__device__ double sums[3] = {1.0, 2.0, 3.0};
__device__ float *pointers[2];
extern __shared__ float dynamic[];

extern "C" __device__ __noinline__ float dot(Pair p, float k, const int *q) {
  float s = p.x * k;
  for (int i = 0; i < 4; i++) s += p.y[i] * q[i];
  return s + (float)p.z;
}
extern "C" __device__ __noinline__ Pair make(int a) {
  Pair p = {(float)a, {a, a + 1, a + 2, a + 3}, a * 2.0};
  return p;
}
__device__ float successor(float x) { return x + 1.f; }
__device__ float square(float x) { return x * x; }
__device__ Map maps[2] = {successor, square};

extern "C" __global__ void indirect(float *o, const float *i, int which) { o[threadIdx.x] = maps[which](i[threadIdx.x]); }

extern "C" __global__ void structures(float *o, int *q, Pair p) {
  o[threadIdx.x] = dot(p, 3.f, q) + dot(make(q[0]), weights[q[1] & 7], q);
  atomicAdd(&counter, 1);
  atomicAdd(&sums[1], 2.0);
}

extern "C" __global__ void choices(int *o, int k) {
  switch (k) {
  case 0: o[0] = 3 * o[7]; break;
  case 1: o[1] = o[3] - 1; break;
  case 2: o[2] = o[3] / o[5]; break;
  case 3: o[3] = o[1] % o[5]; break;
  case 4: o[4] ^= 1; break;
  case 5: o[5] <<= o[6]; break;
  case 6: o[6] = __popc(o[7]); break;
  case 7: o[7] = __clz(o[6]); break;
  case 8: o[8] = __brev(o[1]); break;
  default: o[9] = 1;
  }
}

extern "C" __global__ void warps(int *o) {
  int v = o[threadIdx.x];
  dynamic[threadIdx.x] = v;
  __syncthreads();
  v += __shfl_xor_sync(~0u, v, 3) + __shfl_down_sync(~0u, v, 1) + __ballot_sync(~0u, v > 3) + __any_sync(~0u, v > 0);
  v += __activemask() + __syncthreads_count(v > 1) + __syncthreads_and(v > 2) + __syncthreads_or(v);
  __syncwarp();
  __threadfence();
  v += (int)dynamic[63 - threadIdx.x] + atomicMax(o + 1, v) + atomicInc((unsigned *)o + 3, 7u) + atomicExch(o, 3);
  v += atomicCAS(o + 4, 1, 2) + atomicOr_block(o + 2, 4);
  v += __dp4a(v, 3, 4) + __byte_perm(v, v, 0x3210) + __funnelshift_l(v, v, 3) + __mulhi(v, v) + __ffs(v);
  v += __vadd4(v, v) + __vabsdiffu4(v, v) + __usad(v, 1, 2);
  asm volatile("{ .reg .pred p; .reg .u32 t; setp.ne.u32 p, %1, 0; @p add.u32 t, %1, 1; @!p mov.u32 t, 5; mov.u32 %0, t; }"
               : "=r"(v) : "r"(v));
  asm volatile("{ .reg .pred p; setp.ne.u32 p, %1, 0; @p bra on; add.s32 %0, %1, 7; on: }" : "=r"(v) : "r"(v));
  asm volatile("{ .reg .pred p; setp.ne.u32 p, %1, 0; @p bra on; add.s32 %0, %1, 9; on: }" : "=r"(v) : "r"(v));
  o[threadIdx.x] = v + (int)clock64();
}

extern "C" __global__ void __launch_bounds__(256, 2) local(int *o, int n) {
  int a[32];
  for (int i = 0; i < 32; i++) a[i] = o[i];
  for (int i = 0; i < n; i++) a[a[i] & 31] += i;
  int s = 0;
#pragma unroll 1
  for (int i = 0; i < 32; i++) s += a[i];
  o[0] = s;
  printf("%d %f\n", s, 1.5);
}

extern "C" __global__ void widths(float4 *a, const float4 *__restrict__ b, uchar4 *c, short *s, long long *l, double *d) {
  int i = threadIdx.x;
  a[i] = b[i];
  c[i].x += 3;
  s[i] *= 3;
  l[i] = l[i] / 7 + __mul64hi(l[i], 3) + (l[i] >> 3);
  a[i].y = s[i] > 4 ? (float)l[i] : rsqrtf(a[i].w) + __fdividef(a[i].w, 3.f);
  d[i] = fma(d[i], d[i], sqrt(d[i])) / 3.0 + (double)(unsigned)a[i].z;
  if (l[i] > 3) __trap();
}
