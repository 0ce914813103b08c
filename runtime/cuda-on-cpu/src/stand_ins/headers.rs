//! Headers of the standard library for NVRTC, which has none. nvcc takes these from the compiler of
//! the host.
//!
//! NVRTC declares functions of the device without a header: `printf`, `malloc`, `memcpy`, `assert`
//! and the functions of mathematics. Headers for these are thus empty. Others define types and
//! limits, with the types that the headers of CUDA's C++ library (`cuda/std`) have under NVRTC.

use std::ffi::CStr;

/// The names and the texts.
pub const HEADERS: [(&CStr, &CStr); 19] = [
    (OVERLOADS, MIXED),
    (c"assert.h", c""),
    (c"cassert", c""),
    (c"stddef.h", c""),
    (c"cstddef", c""),
    (c"stdio.h", c""),
    (c"cstdio", c""),
    (c"stdlib.h", c""),
    (c"cstdlib", c""),
    (c"string.h", c""),
    (c"cstring", c""),
    (c"math.h", MATHEMATICS),
    (c"cmath", NAMESPACE),
    (c"stdint.h", INTEGERS),
    (c"cstdint", INTEGERS),
    (c"limits.h", LIMITS),
    (c"climits", LIMITS),
    (c"float.h", FLOATS),
    (c"cfloat", FLOATS),
];

/// The name of the header that each compilation includes first.
pub const OVERLOADS: &CStr = c"cuda-on-cpu/overloads.h";

/// Functions of a `float` and a `double`. The headers of the host declare them for nvcc. NVRTC
/// rejects a call as ambiguous. Templates fit these two types only: with plain overloads, calls
/// with an integer, as in `fmax(x, 0)`, would become ambiguous.
const MIXED: &CStr = c"#pragma once
template <class A, class B> struct cuda_on_cpu_mixed {};
template <> struct cuda_on_cpu_mixed<float, double> { typedef double type; };
template <> struct cuda_on_cpu_mixed<double, float> { typedef double type; };
#define CUDA_ON_CPU_MIXED(name) \\
template <class A, class B> static __device__ __forceinline__ \\
typename cuda_on_cpu_mixed<A, B>::type name(A x, B y) { return name(double(x), double(y)); }
CUDA_ON_CPU_MIXED(pow)
CUDA_ON_CPU_MIXED(fmod)
CUDA_ON_CPU_MIXED(atan2)
CUDA_ON_CPU_MIXED(fmax)
CUDA_ON_CPU_MIXED(fmin)
CUDA_ON_CPU_MIXED(hypot)
CUDA_ON_CPU_MIXED(fdim)
CUDA_ON_CPU_MIXED(remainder)
CUDA_ON_CPU_MIXED(nextafter)
#undef CUDA_ON_CPU_MIXED
";

const MATHEMATICS: &CStr = c"#pragma once
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#define HUGE_VAL __longlong_as_double(0x7ff0000000000000LL)
#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LOG10E 0.43429448190325182765
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
";

const NAMESPACE: &CStr = c"#pragma once
#include <math.h>
namespace std {
using ::abs; using ::fabs; using ::sqrt; using ::pow; using ::exp; using ::log; using ::log2; using ::log10;
using ::sin; using ::cos; using ::tan; using ::asin; using ::acos; using ::atan; using ::atan2;
using ::sinh; using ::cosh; using ::tanh; using ::floor; using ::ceil; using ::fmod;
}
";

const INTEGERS: &CStr = c"#pragma once
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
typedef long long intptr_t;
typedef unsigned long long uintptr_t;
#define INT8_MAX 127
#define INT16_MAX 32767
#define INT32_MAX 2147483647
#define INT64_MAX 9223372036854775807LL
#define INT8_MIN (-INT8_MAX - 1)
#define INT16_MIN (-INT16_MAX - 1)
#define INT32_MIN (-INT32_MAX - 1)
#define INT64_MIN (-INT64_MAX - 1)
#define UINT8_MAX 255
#define UINT16_MAX 65535
#define UINT32_MAX 4294967295U
#define UINT64_MAX 18446744073709551615ULL
";

const LIMITS: &CStr = c"#pragma once
#define CHAR_BIT 8
#define SCHAR_MAX 127
#define SCHAR_MIN (-SCHAR_MAX - 1)
#define UCHAR_MAX 255
#define SHRT_MAX 32767
#define SHRT_MIN (-SHRT_MAX - 1)
#define USHRT_MAX 65535
#define INT_MAX 2147483647
#define INT_MIN (-INT_MAX - 1)
#define UINT_MAX 4294967295U
#define LLONG_MAX 9223372036854775807LL
#define LLONG_MIN (-LLONG_MAX - 1)
#define ULLONG_MAX 18446744073709551615ULL
";

const FLOATS: &CStr = c"#pragma once
#define FLT_MAX 3.402823466e+38F
#define FLT_MIN 1.175494351e-38F
#define FLT_EPSILON 1.192092896e-07F
#define DBL_MAX 1.7976931348623157e+308
#define DBL_MIN 2.2250738585072014e-308
#define DBL_EPSILON 2.2204460492503131e-16
";
