// The forms of PTX that clang writes.
#define GLOBAL __attribute__((address_space(1)))
#define SHARED __attribute__((address_space(3)))
#define CONST __attribute__((address_space(4)))
typedef float Vector __attribute__((ext_vector_type(4)));
struct Record { int a; float b[3]; double c; };

CONST float table[4] = {1, 2, 3, 4};
GLOBAL int counters[3];
SHARED int scratch[128];
int (*functions[2])(int);
static const char *const names[3] = {"alpha", "beta", "gamma"};

__attribute__((noinline)) int sum(struct Record r, int k) {
  int t = 0;
  for (int i = 0; i < 3; i++) t += r.b[i] * k;
  return t + r.a;
}
__attribute__((noinline)) struct Record make(int k) {
  struct Record r = {k, {1, 2, k}, k * 0.5};
  return r;
}
int choose(int x) {
  switch (x) {
  case 0: return sum(make(1), 2);
  case 1: return names[x][0];
  case 2: return 7;
  case 3: return functions[x & 1](x);
  case 4: return counters[2];
  case 5: return 12;
  default: return -1;
  }
}
__attribute__((noinline)) void work(float GLOBAL *a, int n, Vector GLOBAL *v, double *d, long long *l, unsigned char *c) {
  int i = __nvvm_read_ptx_sreg_tid_x() + __nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x();
  if (i < n) {
    a[i] = a[i] * table[i & 3] + __builtin_sqrtf(a[i]);
    v[i] = v[i] + v[i + 1];
    d[i] = __builtin_fma(d[i], d[i], 1.0);
    scratch[i & 127] = n;
    __nvvm_bar0();
    a[i] += scratch[(i + 1) & 127];
    l[i] = l[i] / 3 + (l[i] << n);
    c[i] = c[i] * 3 + (c[i] >> 2);
  }
  __sync_fetch_and_add(&counters[0], 3);
  __sync_val_compare_and_swap(&l[0], 1, 2);
  int array[16];
  for (int j = 0; j < 16; j++) array[j] = choose(j + n);
  a[n] = array[n & 15];
  a[1] = __nvvm_shfl_sync_down_i32(-1, n, 1, 31);
}
