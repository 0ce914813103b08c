// Kernels for clang without the CUDA headers: this file declares the parts of CUDA that it uses.
#define GLOBAL extern "C" __attribute__((global))
#define DEVICE static __attribute__((device))
#define NOINLINE __attribute__((noinline))
#define SHARED __attribute__((shared))
#define CONSTANT __attribute__((constant))
typedef unsigned int u32;
typedef unsigned long long u64;

DEVICE int thread() { return __nvvm_read_ptx_sreg_tid_x(); }
DEVICE int index() {
  return __nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x() + __nvvm_read_ptx_sreg_tid_x();
}

// A dense switch compiles to a branch table.
DEVICE NOINLINE int operate(int what, int a, int b) {
  switch (what) {
  case 0: return a + b;
  case 1: return a - b;
  case 2: return a * b;
  case 3: return b ? a / b : -1;
  case 4: return b ? a % b : -2;
  case 5: return a << (b & 31);
  case 6: return a >> (b & 31);
  case 7: return a ^ b;
  case 8: return a > b ? a : b;
  default: return 0;
  }
}

// A stack machine with its stack in local memory: one byte per instruction, one program per thread.
GLOBAL void machine(const unsigned char *programs, int length, int *results, int n) {
  int i = index();
  if (i >= n) return;
  int stack[16];
  int top = 0;
  for (int k = 0; k < length; k++) {
    unsigned char code = programs[i * length + k];
    if (code < 128) {
      if (top < 16) stack[top++] = code - 64;
    } else if (top >= 2) {
      int b = stack[--top], a = stack[--top];
      stack[top++] = operate(code % 9, a, b);
    }
  }
  int sum = 0;
  while (top) sum = sum * 31 + stack[--top];
  results[i] = sum;
}

// Structures are passed and returned by value.
struct Complex { double re, im; };
struct Pair { Complex first; float weight; short tags[3]; char mark; };

DEVICE NOINLINE Complex times(Complex a, Complex b) {
  Complex c = {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  return c;
}
DEVICE NOINLINE Pair turned(Pair p, Complex by) {
  p.first = times(p.first, by);
  p.weight = -p.weight;
  short t = p.tags[0];
  p.tags[0] = p.tags[2];
  p.tags[2] = t;
  p.mark = p.mark + 1;
  return p;
}
GLOBAL void turn(Pair *pairs, Complex by, int n) {
  int i = index();
  if (i < n) pairs[i] = turned(turned(pairs[i], by), by);
}

// Indirect calls through a function table in constant memory.
DEVICE float square(float x) { return x * x; }
DEVICE float twice(float x) { return x + x; }
DEVICE float shifted(float x) { return x - 3.0f; }
DEVICE float reversed(float x) { return 1.0f / x; }
typedef float (*Function)(float);
__attribute__((device)) Function functions[4] = {square, twice, shifted, reversed};
CONSTANT float weights[4] = {0.5f, 0.25f, 2.0f, -1.0f};

GLOBAL void composed(const float *x, const int *which, float *y, int n) {
  int i = index();
  if (i >= n) return;
  float v = x[i];
  for (int k = 0; k < 3; k++) {
    int f = which[i] >> (2 * k) & 3;
    v = functions[f](v) * weights[f];
  }
  y[i] = v;
}

// A merge sort in shared memory, 128 keys per block.
GLOBAL void merge_sort(u64 *keys) {
  static SHARED u64 a[128], b[128];
  int t = thread();
  u64 *from = a, *to = b;
  from[t] = keys[index()];
  __syncthreads();
  for (int width = 1; width < 128; width *= 2) {
    int start = t / (2 * width) * (2 * width), half = t - start >= width;
    int own = half ? t - start - width : t - start;
    int low = start + (half ? 0 : width), count = 0;
    // The number of keys of the other half that precede this one.
    int lo = 0, hi = width;
    while (lo < hi) {
      int mid = (lo + hi) / 2;
      bool before = half ? from[low + mid] <= from[t] : from[low + mid] < from[t];
      if (before) lo = mid + 1; else hi = mid;
    }
    count = lo;
    to[start + own + count] = from[t];
    __syncthreads();
    u64 *swap = from; from = to; to = swap;
  }
  keys[index()] = from[t];
}

// 256-bit arithmetic with carries.
GLOBAL void long_products(const u32 *a, const u32 *b, u32 *c, int n) {
  int i = index();
  if (i >= n) return;
  u32 sum[16];
  for (int k = 0; k < 16; k++) sum[k] = 0;
  for (int j = 0; j < 8; j++) {
    u64 carry = 0;
    for (int k = 0; k < 8; k++) {
      carry += (u64)a[i * 8 + j] * b[i * 8 + k] + sum[j + k];
      sum[j + k] = (u32)carry;
      carry >>= 32;
    }
    sum[j + 8] = (u32)carry;
  }
  for (int k = 0; k < 16; k++) c[i * 16 + k] = sum[k];
}

// Integers of every width, signed and unsigned, with C's conversions.
GLOBAL void widths(const signed char *a, const unsigned short *b, const long long *c, long long *out, int n) {
  int i = index();
  if (i >= n) return;
  signed char x = a[i] * 3;
  unsigned short y = b[i] - a[i];
  long long z = c[i] / (x ? x : 1) + c[i] % (y + 1LL);
  u32 bits = __builtin_popcountll(c[i]) + __builtin_clz(y | 1) + __builtin_ctzll(c[i] | 1ULL << 63);
  out[i] = z + (x >> 1) - (y << 2) + bits + __builtin_bswap32((u32)c[i]) + (long long)(__int128(c[i]) * b[i] >> 64);
}

// Block sums with atomics: integers, a float by compare-and-swap, a counter for the last block.
GLOBAL void counted(const float *x, int n, int *bins, float *sum, u32 *blocks, int *last) {
  int i = index();
  if (i < n) {
    __nvvm_atom_add_gen_i(bins + ((int)x[i] & 7), 1);
    int *word = (int *)sum;
    int old = *(volatile int *)word, seen;
    do {
      seen = old;
      float next = __builtin_bit_cast(float, seen) + x[i];
      old = __nvvm_atom_cas_gen_i(word, seen, __builtin_bit_cast(int, next));
    } while (old != seen);
  }
  __syncthreads();
  if (thread() == 0) {
    __nvvm_membar_gl();
    u32 before = __nvvm_atom_inc_gen_ui(blocks, 1000);
    if (before + 1 == __nvvm_read_ptx_sreg_nctaid_x()) *last = __nvvm_read_ptx_sreg_ctaid_x();
  }
}

// Warp sums with shuffles, and votes.
GLOBAL void warps(const int *x, int *sums, u32 *ballots) {
  int v = x[index()];
  u32 odd = __nvvm_vote_ballot_sync(0xffffffff, v & 1);
  for (int d = 16; d; d /= 2) v += __nvvm_shfl_sync_bfly_i32(0xffffffff, v, d, 31);
  if ((thread() & 31) == 0) {
    sums[index() / 32] = v;
    ballots[index() / 32] = odd;
  }
}

// Cube roots by Newton's method in double; each thread leaves the loop on convergence.
GLOBAL void roots(const double *x, double *y, int *steps, int n) {
  int i = index();
  if (i >= n) return;
  double r = x[i] > 1 ? x[i] : 1.0;
  int k = 0;
  for (; k < 200; k++) {
    double next = (2.0 * r + x[i] / (r * r)) / 3.0;
    double change = next > r ? next - r : r - next;
    r = next;
    if (change <= 1e-15 * r) break;
  }
  y[i] = r;
  steps[i] = k;
}
