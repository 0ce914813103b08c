"""Textures and surfaces, against a plain implementation in exact fractions.

The formulas are those of the CUDA C programming guide ("Texture Fetching"). Where the guide leaves
room, they are the results of an H100. An H100's words agree, except for an eighth of those from
linear filters of volumes, and one in 31 from linear filters of signed bytes. With `--print`, the
script prints every result word, so that two drivers can be compared.
"""
import ctypes as C
import math
import random
import struct
import sys
from fractions import Fraction

cu = C.CDLL('libcuda.so.1')
PRINT = '--print' in sys.argv
U8, U16, U32, S8, S16, S32, HALF, FLOAT = 1, 2, 3, 8, 9, 10, 16, 32
WRAP, CLAMP, MIRROR, BORDER = range(4)
POINT, LINEAR = range(2)
INTEGER, NORMALIZED = 1, 2
LAYERED, SURFACE = 1, 2
CODE = {U8: 'B', U16: 'H', U32: 'I', S8: 'b', S16: 'h', S32: 'i', HALF: 'e', FLOAT: 'f'}
NAME = {U8: 'u8', U16: 'u16', U32: 'u32', S8: 's8', S16: 's16', S32: 's32', HALF: 'f16', FLOAT: 'f32'}
MOST = {U8: 255, U16: 65535, S8: 127, S16: 32767}


class Array(C.Structure):
    _fields_ = [('width', C.c_size_t), ('height', C.c_size_t), ('depth', C.c_size_t), ('format', C.c_int),
                ('channels', C.c_uint), ('flags', C.c_uint)]


class Resource(C.Structure):
    _fields_ = [('kind', C.c_int), ('words', C.c_uint64 * 16), ('flags', C.c_uint)]


class Texture(C.Structure):
    _fields_ = [('address', C.c_int * 3), ('filter', C.c_int), ('flags', C.c_uint), ('anisotropy', C.c_uint),
                ('mip_filter', C.c_int), ('bias', C.c_float), ('low', C.c_float), ('high', C.c_float),
                ('border', C.c_float * 4), ('reserved', C.c_int * 12)]


class Side(C.Structure):
    _fields_ = [('x', C.c_size_t), ('y', C.c_size_t), ('z', C.c_size_t), ('level', C.c_size_t), ('kind', C.c_int),
                ('host', C.c_void_p), ('device', C.c_uint64), ('array', C.c_void_p), ('context', C.c_void_p),
                ('pitch', C.c_size_t), ('height', C.c_size_t)]


class Copy3D(C.Structure):
    _fields_ = [('src', Side), ('dst', Side), ('width', C.c_size_t), ('height', C.c_size_t), ('depth', C.c_size_t)]


def code(name, *arguments):
    return getattr(cu, name)(*arguments)


def call(name, *arguments):
    result = code(name, *arguments)
    assert result == 0, f'{name} returned {result}'


call('cuInit', 0)
context = C.c_void_p()
call('cuDevicePrimaryCtxRetain', C.byref(context), 0)
call('cuCtxSetCurrent', context)


def allocate(bytes_):
    address = C.c_uint64()
    call('cuMemAlloc_v2', C.byref(address), C.c_size_t(bytes_))
    return address.value


def upload(data, address=None):
    address = address or allocate(max(1, len(data)))
    call('cuMemcpyHtoD_v2', C.c_uint64(address), data, C.c_size_t(len(data)))
    return address


def download(address, bytes_):
    data = C.create_string_buffer(bytes_)
    call('cuMemcpyDtoH_v2', data, C.c_uint64(address), C.c_size_t(bytes_))
    return data.raw


HEAD = '.version 6.0\n.target sm_61\n.address_size 64\n'
LIST = {'1d': '{x}', '2d': '{x, y}', '3d': '{x, y, z, z}', 'a1d': '{l, x}', 'a2d': '{l, x, y, y}'}


def entry(name, body):
    """Returns an entry whose threads read four coordinate words and write four result words."""
    return f'''
.visible .entry {name}(.param .u64 handle, .param .u64 from, .param .u64 to, .param .u32 count)
{{
    .reg .u64 h, f, t, o; .reg .u32 i, n, l, c, d; .reg .b32 x, y, z, r0, r1, r2, r3; .reg .b16 s0, s1, s2, s3; .reg .b64 w; .reg .pred p;
    mov.u32 i, %tid.x; mov.u32 c, %ctaid.x; mov.u32 d, %ntid.x; mad.lo.u32 i, c, d, i;
    ld.param.u32 n, [count]; setp.ge.u32 p, i, n; @p ret;
    ld.param.u64 h, [handle]; ld.param.u64 f, [from]; ld.param.u64 t, [to];
    mul.wide.u32 o, i, 16; add.u64 f, f, o; add.u64 t, t, o;
    ld.global.b32 x, [f]; ld.global.b32 y, [f+4]; ld.global.b32 z, [f+8]; ld.global.u32 l, [f+12];
    mov.b32 r0, 0; mov.b32 r1, 0; mov.b32 r2, 0; mov.b32 r3, 0;
    {body}
    st.global.v4.b32 [t], {{r0, r1, r2, r3}};
}}
'''


modules = {}


def function(text, name):
    if text not in modules:
        module = C.c_void_p()
        call('cuModuleLoadData', C.byref(module), (HEAD + text).encode())
        modules[text] = module
    found = C.c_void_p()
    call('cuModuleGetFunction', C.byref(found), modules[text], name.encode())
    return found


def run(text, name, handle, coordinates):
    """Returns the result words of each tuple of four coordinate words."""
    data = b''.join(struct.pack('<4I', *c) for c in coordinates)
    source, target = upload(data), allocate(len(data))
    values = [C.c_uint64(handle), C.c_uint64(source), C.c_uint64(target), C.c_uint32(len(coordinates))]
    pointers = (C.c_void_p * 4)(*[C.cast(C.pointer(v), C.c_void_p) for v in values])
    blocks = (len(coordinates) + 63) // 64
    call('cuLaunchKernel', function(text, name), blocks, 1, 1, 64, 1, 1, 0, None, pointers, None)
    call('cuCtxSynchronize')
    words = struct.unpack(f'<{4 * len(coordinates)}I', download(target, len(data)))
    call('cuMemFree_v2', C.c_uint64(source))
    call('cuMemFree_v2', C.c_uint64(target))
    return [words[4 * i:4 * i + 4] for i in range(len(coordinates))]


def fetch(handle, shape, dtype, ctype, coordinates):
    text = entry('k', f'tex.{shape}.v4.{dtype}.{ctype} {{r0, r1, r2, r3}}, [h, {LIST[shape]}];')
    return run(text, 'k', handle, coordinates)


def bits(value):
    return struct.unpack('<I', struct.pack('<f', value))[0]


def single(word):
    return struct.unpack('<f', struct.pack('<I', word))[0]


def round_single(value):
    """Rounds a fraction to a single, to nearest even."""
    if value == 0:
        return 0.0
    exponent = max(math.frexp(float(value))[1] - 24, -149)
    return math.ldexp(round(value / Fraction(2) ** exponent), exponent)


class Image:
    """Texels in host memory, and in an array or linear memory of the device."""

    def __init__(self, kind, size, format_, channels, seed=1):
        self.kind, self.format, self.channels = kind, format_, channels
        self.width, self.height, self.depth = (*size, 1, 1)[:3] if kind != 'a1d' else (size[0], 1, size[1])
        rng = random.Random(seed)
        count = self.width * self.height * self.depth * channels
        if format_ in (HALF, FLOAT):
            values = [rng.randrange(-1000, 1000) / 8 for _ in range(count)]
        else:
            width = struct.calcsize(CODE[format_]) * 8
            low = -(1 << width - 1) if format_ in (S8, S16, S32) else 0
            values = [rng.randrange(low, low + (1 << width)) for _ in range(count)]
            values[0], values[-1] = low, low + (1 << width) - 1
        self.values = values
        self.data = struct.pack(f'<{count}{CODE[format_]}', *values)
        self.texel_bytes = struct.calcsize(CODE[format_]) * channels
        self.array = None
        self.resource = Resource()
        row = self.width * self.texel_bytes
        if kind == 'linear':
            self.resource.kind = 2
            self.address = upload(self.data)
            self.resource.words[0] = self.address
            self.resource.words[1] = format_ | channels << 32
            self.resource.words[2] = len(self.data)
        elif kind == 'pitch':
            self.resource.kind = 3
            pitch = (row + 511) // 512 * 512
            self.address = allocate(pitch * self.height)
            for y in range(self.height):
                upload(self.data[y * row:(y + 1) * row], self.address + y * pitch)
            for i, word in enumerate([self.address, format_ | channels << 32, self.width, self.height, pitch]):
                self.resource.words[i] = word
        else:
            layered = kind in ('a1d', 'a2d')
            self.array = C.c_void_p()
            height = 0 if kind in ('1d', 'a1d') else self.height
            depth = self.depth if layered or kind == '3d' else 0
            made = Array(self.width, height, depth, format_, channels, (LAYERED if layered else 0) | SURFACE)
            call('cuArray3DCreate_v2', C.byref(self.array), C.byref(made))
            copy = Copy3D(width=row, height=self.height, depth=self.depth)
            copy.src = Side(kind=1, host=C.cast(C.c_char_p(self.data), C.c_void_p), pitch=row, height=self.height)
            copy.dst = Side(kind=3, array=self.array)
            call('cuMemcpy3D_v2', C.byref(copy))
            self.resource.words[0] = self.array.value

    def texture(self, address=CLAMP, filter_=POINT, flags=0, border=(0, 0, 0, 0)):
        made = Texture()
        made.address[:] = [address] * 3
        made.filter, made.flags = filter_, flags
        made.border[:] = border
        handle = C.c_uint64()
        call('cuTexObjectCreate', C.byref(handle), C.byref(self.resource), C.byref(made), None)
        return handle.value

    def contents(self):
        row = self.width * self.texel_bytes
        data = C.create_string_buffer(len(self.data))
        copy = Copy3D(width=row, height=self.height, depth=self.depth)
        copy.src = Side(kind=3, array=self.array)
        copy.dst = Side(kind=1, host=C.cast(data, C.c_void_p), pitch=row, height=self.height)
        call('cuMemcpy3D_v2', C.byref(copy))
        return data.raw


def converted(image, value, as_integer):
    """Returns a channel as the texture gives it: an integer, or a fraction that was rounded to a single."""
    if image.format in (HALF, FLOAT):
        return Fraction(value)
    if as_integer or image.format in (U32, S32):
        return value
    return Fraction(round_single(max(Fraction(value, MOST[image.format]), Fraction(-1))))


def texel(image, x, y, z, flags, border):
    """Returns four channels of a texel; `None` as a coordinate is outside."""
    if None in (x, y, z):
        return list(border[:image.channels]) + MISSING[image.channels:]
    at = ((z * image.height + y) * image.width + x) * image.channels
    channels = [converted(image, v, flags & INTEGER) for v in image.values[at:at + image.channels]]
    return channels + MISSING[len(channels):]


# The values of channels that a texture does not have.
MISSING = [0, 0, 0, 0]


def index(i, n, mode):
    """Applies an addressing mode to the index of a texel."""
    if mode == CLAMP:
        return min(max(i, 0), n - 1)
    if mode == WRAP:
        return i % n
    if mode == MIRROR:
        return i % n if (i // n) % 2 == 0 else n - 1 - i % n
    return i if 0 <= i < n else None


def rounded(weight):
    """Rounds a product of two weights to 8 fractional bits."""
    return weight + 128 >> 8


def square(x, y):
    """Returns the weights of four texels, in units of 1/256, x fastest."""
    both = rounded(x * y)
    return [256 - x - y + both, x - both, y - both, both]


def cube(x, y, z):
    """Returns the weights of eight texels, x fastest."""
    whole = square(x, y)
    near = [rounded(w * (256 - z)) for w in whole]
    near[0] = min(max(256 - z - sum(near[1:]), 0), whole[0])
    return near + [w - n for w, n in zip(whole, near)]


def half(value):
    """Rounds a fraction to a half, halves of a step away from zero."""
    if value == 0:
        return value
    step = Fraction(2) ** max(math.frexp(abs(float(value)))[1] - 11, -24)
    return math.floor(abs(value) / step + Fraction(1, 2)) * step * (1 if value > 0 else -1)


def expected(image, coordinate, axes, mode, filter_, flags, border=(0, 0, 0, 0)):
    """Returns the four channels at a location, before they are rounded to words."""
    normalized = flags & NORMALIZED
    if not normalized and mode in (WRAP, MIRROR):
        mode = CLAMP
    sizes = [image.width, image.height, image.depth]
    # A plain texture of one axis is filtered as a plane of one row.
    places = list(coordinate[:axes]) + ([0] if image.kind in ('1d', 'linear') and filter_ == LINEAR else [])
    indices, weights = [], []
    for value, size in zip(places, sizes):
        at = Fraction(math.floor(Fraction(value) * 2 ** 21), 2 ** 21) * size if normalized else Fraction(value)
        if filter_ == POINT:
            indices.append((index(math.floor(at), size, mode),) * 2)
        else:
            fixed = math.floor((at - Fraction(1, 2)) * 256 + Fraction(1, 2))
            indices.append((index(fixed >> 8, size, mode), index((fixed >> 8) + 1, size, mode)))
        weights.append(0 if filter_ == POINT else fixed & 255)
    while len(indices) < 2:
        indices.append((0, 0))
        weights.append(0)
    if len(indices) < 3:
        layer = coordinate[3] if image.kind in ('a1d', 'a2d') else 0
        indices.append((layer, layer))
        weights.append(0)
    integer = image.format in MOST and not flags & INTEGER
    if filter_ == POINT:
        return texel(image, *[pair[0] for pair in indices], flags, border)
    total = [Fraction(0)] * 4
    most = {U8: 65535, U16: 65535, S8: 32767, S16: 32767}.get(image.format)
    for i, weight in enumerate(cube(*weights)):
        place = [indices[k][i >> k & 1] for k in range(3)]
        if integer:
            values = texel(image, *place, INTEGER, [b * MOST[image.format] for b in border])
        else:
            values = texel(image, *place, flags, border)
        for k, value in enumerate(values):
            total[k] += Fraction(weight, 256) * value
    if integer:
        steps = [math.floor(t * most / MOST[image.format] + Fraction(1, 2)) for t in total]
        return [Fraction(max(t, -most), most) for t in steps]
    return [half(t) for t in total] if image.format == HALF else total


wrong = 0


def compare(name, coordinates, found, wanted):
    """Compares words. `wanted` has a word, a tuple of allowed words, or `None` for any, of each."""
    global wrong
    bad = [i for i, (f, w) in enumerate(zip(found, wanted)) if w is not None and tuple(f) != tuple(w)]
    wrong += len(bad)
    print(f'{name}: {len(found)} results, {len(bad)} differ from the formula')
    if PRINT:
        for c, f, w in zip(coordinates, found, wanted):
            mark = '' if w is None or tuple(f) == tuple(w) else '   formula ' + ' '.join(f'{x:08x}' for x in w)
            print('  ' + ' '.join(str(x) for x in c) + ' : ' + ' '.join(f'{x:08x}' for x in f) + mark)
    elif bad:
        i = bad[0]
        print('  first', coordinates[i], [hex(x) for x in found[i]], [hex(x) for x in wanted[i]])


def words(values, image, flags):
    if values is None:
        return None
    integer = image.format in (U32, S32) or flags & INTEGER and image.format not in (HALF, FLOAT)
    return [int(v) & 0xffffffff if integer else bits(round_single(Fraction(v))) for v in values]


def line(size, rng):
    """Returns coordinates of one axis in texels: middles, edges, points between, and far ones."""
    near = [i + d for i in range(-2, size + 2) for d in (0, 0.25, 0.5, 0.75)]
    fixed = [2.5 + k / 1024 for k in range(0, 12)] + [1 - 2.0 ** -24, 3 - 2.0 ** -22, -2.0 ** -24]
    drawn = [single(bits(rng.uniform(-2 * size, 3 * size))) for _ in range(24)]
    return near + fixed + drawn


def sampled(name, image, shape, mode, filter_, flags, border=(0, 0, 0, 0)):
    rng = random.Random(name)
    axes = {'1d': 1, '2d': 2, '3d': 3, 'a1d': 1, 'a2d': 2}[shape]
    sizes = [image.width, image.height, image.depth]
    columns = [line(sizes[i], rng) for i in range(3)]
    for column in columns[1:]:
        rng.shuffle(column)
    count = max(len(column) for column in columns)
    coordinates = []
    for i in range(count):
        at = [column[i % len(column)] for column in columns]
        if flags & NORMALIZED:
            at = [a / n for a, n in zip(at, sizes)]
        layer = i % image.depth if shape[0] == 'a' else 0
        coordinates.append((*[single(bits(a)) for a in at], layer))
    handle = image.texture(mode, filter_, flags, border)
    given = [(bits(x), bits(y), bits(z), l) for x, y, z, l in coordinates]
    integer = image.format in (U32, S32) or flags & INTEGER and image.format not in (HALF, FLOAT)
    dtype = ('s32' if image.format in (S8, S16, S32) else 'u32') if integer else 'f32'
    found = fetch(handle, shape, dtype, 'f32', given)
    wanted = [words(expected(image, c, axes, mode, filter_, flags, border), image, flags) for c in coordinates]
    compare(name, coordinates, found, wanted)
    call('cuTexObjectDestroy', C.c_uint64(handle))


def integers(name, image, shape, flags=0, mode=CLAMP):
    """Fetches by integer coordinates."""
    axes = {'1d': 1, '2d': 2, '3d': 3, 'a1d': 1, 'a2d': 2}[shape]
    sizes = [image.width, image.height, image.depth][:axes]
    rng = random.Random(name)
    coordinates = [tuple(rng.randrange(-2, n + 2) for n in [image.width, image.height, image.depth])
                   + ((rng.randrange(image.depth),) if shape[0] == 'a' else (0,)) for _ in range(48)]
    handle = image.texture(mode, POINT, flags)
    integer = image.format in (U32, S32) or flags & INTEGER and image.format not in (HALF, FLOAT)
    dtype = ('s32' if image.format in (S8, S16, S32) else 'u32') if integer else 'f32'
    found = fetch(handle, shape, dtype, 's32', [tuple(v & 0xffffffff for v in c) for c in coordinates])
    wanted = []
    for c in coordinates:
        at = [v if 0 <= v < n else None for v, n in zip(c, sizes)] + [0] * (3 - axes)
        if shape[0] == 'a':
            at[2] = c[3]
        # One integer coordinate reads linear memory; from an array, it gives 0.
        if shape == '1d' and image.kind == '1d':
            at[0] = None
        wanted.append(words(texel(image, *at, flags, [0] * 4), image, flags))
    compare(name, coordinates, found, wanted)
    call('cuTexObjectDestroy', C.c_uint64(handle))


def formats():
    """Reads texels of every format."""
    for format_ in (U8, S8, U16, S16, U32, S32, HALF, FLOAT):
        for channels in (1, 2, 4):
            for flags in (0, INTEGER) if format_ in MOST else (0,):
                image = Image('2d', (7, 5), format_, channels, seed=format_ * 8 + channels)
                how = f'{NAME[format_]} x{channels}{" as integers" if flags else ""}'
                sampled(f'2d point {how}', image, '2d', CLAMP, POINT, flags)
                if not flags and format_ not in (U32, S32):
                    sampled(f'2d linear {how}', image, '2d', CLAMP, LINEAR, 0)
                flat = Image('linear', (37,), format_, channels, seed=format_ * 8 + channels)
                integers(f'linear memory {how}', flat, '1d', flags)


def modes():
    """Reads textures of every shape, with every addressing mode and filter."""
    border = (1.5, -2.0, 0.25, 8.0)
    shapes = [('1d', (13,), 1), ('2d', (8, 5), 2), ('3d', (5, 4, 3), 1), ('a1d', (9, 3), 2), ('a2d', (6, 5, 3), 1)]
    for shape, size, channels in shapes:
        image = Image(shape, size, FLOAT, channels, seed=len(shape) + size[0])
        integers(f'{shape} integer coordinates', image, shape)
        for filter_ in (POINT, LINEAR):
            for mode in (WRAP, CLAMP, MIRROR, BORDER):
                for flags in (0, NORMALIZED):
                    how = ('point', 'linear')[filter_], ('wrap', 'clamp', 'mirror', 'border')[mode]
                    sampled(f'{shape} {how[0]} {how[1]}{" normalized" if flags else ""}', image, shape, mode,
                            filter_, flags, border if mode == BORDER else (0, 0, 0, 0))
    image = Image('pitch', (11, 6), FLOAT, 1, seed=5)
    for filter_ in (POINT, LINEAR):
        for mode, flags in ((CLAMP, 0), (WRAP, NORMALIZED), (BORDER, 0)):
            sampled(f'pitch 2d filter {filter_} mode {mode}', image, '2d', mode, filter_, flags)
    integers('pitch 2d integer coordinates', image, '2d')


def special():
    """Reads at coordinates that are not numbers, and far away, and in layers that do not exist."""
    image = Image('1d', (8,), FLOAT, 1, seed=3)
    for mode, flags in ((CLAMP, 0), (BORDER, 0), (WRAP, NORMALIZED), (MIRROR, NORMALIZED)):
        for filter_ in (POINT, LINEAR):
            handle = image.texture(mode, filter_, flags)
            given = [(w, 0, 0, 0) for w in (0x7fc00000, 0x7f800000, 0xff800000, bits(1e10), bits(-1e10), bits(1e5), 1)]
            found = fetch(handle, '1d', 'f32', 'f32', given)
            # NaN is 0; an infinity is at an edge, or has no position in the period.
            far = [0.0 if flags else 1e6, 0.0 if flags else -1e6]
            known = [0.0, *far, *[single(g[0]) for g in given[3:]]]
            wanted = [words(expected(image, (x, 0, 0, 0), 1, mode, filter_, flags), image, 0) for x in known]
            compare(f'special coordinates, mode {mode}, filter {filter_}', [[hex(g[0])] for g in given], found, wanted)
    image = Image('a2d', (4, 4, 3), FLOAT, 1, seed=3)
    handle = image.texture()
    given = [(bits(1.5), bits(2.5), 0, layer) for layer in (0, 1, 2, 3, 7, 0xffffffff)]
    found = fetch(handle, 'a2d', 'f32', 'f32', given)
    wanted = [words(texel(image, 1, 2, min(g[3], 2), 0, [0] * 4), image, 0) for g in given]
    compare('layers outside', [[g[3]] for g in given], found, wanted)


def gathered():
    """Reads four texels at once, and queries."""
    image = Image('2d', (7, 5), FLOAT, 4, seed=12)
    handle = image.texture()
    rng = random.Random(4)
    coordinates = [(rng.uniform(-1, 8), rng.uniform(-1, 6)) for _ in range(40)] + [(2.5, 2.5), (3.0, 2.0), (0.5, 0.5)]
    given = [(bits(x), bits(y), 0, 0) for x, y in coordinates]
    for channel, letter in enumerate('rgba'):
        text = entry('k', f'tld4.{letter}.2d.v4.f32.f32 {{r0, r1, r2, r3}}, [h, {{x, y}}];')
        found = run(text, 'k', handle, given)
        wanted = []
        for x, y, _, _ in given:
            # The four texels of a linear filter, counterclockwise from the lower left one.
            i, j = [math.floor((Fraction(single(v)) - Fraction(1, 2)) * 256 + Fraction(1, 2)) >> 8 for v in (x, y)]
            four = [(i, j + 1), (i + 1, j + 1), (i + 1, j), (i, j)]
            clamped = [(index(a, 7, CLAMP), index(b, 5, CLAMP)) for a, b in four]
            wanted.append([bits(texel(image, a, b, 0, 0, [0] * 4)[channel]) for a, b in clamped])
        compare(f'tld4.{letter}', coordinates, found, wanted)
    leveled = entry('k', 'tex.level.2d.v4.f32.f32 {r0, r1, r2, r3}, [h, {x, y}], 0f00000000;')
    wanted = [words(expected(image, (single(a), single(b)), 2, CLAMP, POINT, 0), image, 0) for a, b, _, _ in given]
    compare('tex.level', coordinates, run(leveled, 'k', handle, given), wanted)
    queries = ['width', 'height', 'depth', 'normalized_coords']
    for query in queries:
        found = run(entry('k', f'txq.{query}.b32 r0, [h];'), 'k', handle, [(0, 0, 0, 0)])
        known = {'width': 7, 'height': 5, 'depth': 0, 'normalized_coords': 0}.get(query)
        compare(f'txq.{query}', [[0]], found, [None if known is None else (known, 0, 0, 0)])


def surfaces():
    """Loads, stores and updates elements of surfaces."""
    for shape, size in (('1d', (9,)), ('2d', (6, 5)), ('3d', (4, 3, 3)), ('a1d', (6, 3)), ('a2d', (5, 4, 3))):
        for format_, channels, ty in ((FLOAT, 1, 'b32'), (U8, 4, 'v2.b16'), (U16, 1, 'b16'), (U32, 4, 'v4.b32'),
                                      (S8, 1, 'b8'), (FLOAT, 2, 'b64')):
            image = Image(shape, size, format_, channels, seed=size[0])
            handle = C.c_uint64()
            call('cuSurfObjectCreate', C.byref(handle), C.byref(image.resource))
            axes = {'1d': 1, '2d': 2, '3d': 3, 'a1d': 1, 'a2d': 2}[shape]
            rng = random.Random(f'{shape}{format_}')
            coordinates = [tuple(rng.randrange(-1, n + 1) for n in (image.width, image.height, image.depth))
                           + ((rng.randrange(image.depth),) if shape[0] == 'a' else (0,)) for _ in range(40)]
            given = [(c[0] * image.texel_bytes & 0xffffffff, c[1] & 0xffffffff, c[2] & 0xffffffff, c[3])
                     for c in coordinates]
            narrow = ty in ('v2.b16', 'b16', 'b8')
            registers = {'b32': 'r0', 'v4.b32': '{r0, r1, r2, r3}', 'b16': 's0', 'b8': 's0', 'v2.b16': '{s0, s1}',
                         'b64': 'w'}[ty]
            unpack = {'b64': 'mov.b64 {r0, r1}, w;'}.get(ty, 'cvt.u32.u16 r0, s0; cvt.u32.u16 r1, s1;' if narrow else '')
            for outside in ('clamp', 'zero', 'trap'):
                body = f'mov.b16 s0, 0; mov.b16 s1, 0; suld.b.{shape}.{ty}.{outside} {registers}, [h, {LIST[shape]}];'
                sizes = [image.width, image.height, image.depth][:axes]
                good = [all(0 <= v < n for v, n in zip(c, sizes)) for c in coordinates]
                kept = [i for i in range(len(good)) if good[i] or outside != 'trap']
                found = run(entry('k', body + unpack), 'k', handle.value, [given[i] for i in kept])
                wanted = []
                for i in kept:
                    c = coordinates[i]
                    at = [min(max(v, 0), n - 1) for v, n in zip(c, sizes)] + [0] * (3 - axes)
                    if shape[0] == 'a':
                        at[2] = c[3]
                    start = ((at[2] * image.height + at[1]) * image.width + at[0]) * image.texel_bytes
                    data = image.data[start:start + image.texel_bytes]
                    if not good[i] and outside == 'zero':
                        data = bytes(len(data))
                    unit = 2 if narrow and ty != 'b8' else 1 if narrow else 4
                    parts = [int.from_bytes(data[k:k + unit], 'little') for k in range(0, len(data), unit)]
                    wanted.append(tuple(parts + [0] * (4 - len(parts))))
                compare(f'suld.{shape}.{ty}.{outside}', [coordinates[i] for i in kept], found, wanted)
            # Each inside element receives a number; stores outside have no effect with `.zero`.
            if ty == 'b32':
                cells = [(x, y, z) for z in range(-1 if axes == 3 else 0, image.depth + (axes == 3))
                         for y in range(-1 if axes >= 2 else 0, image.height + (axes >= 2)) for x in range(-1, image.width + 1)]
                given = [(x * 4 & 0xffffffff, y & 0xffffffff, z & 0xffffffff, z if shape[0] == 'a' else 0) for x, y, z in cells]
                body = f'mad.lo.u32 r0, i, 77, 5; sust.b.{shape}.b32.zero [h, {LIST[shape]}], r0;'
                found = run(entry('k', body), 'k', handle.value, given)
                wanted = {}
                for i, (x, y, z) in enumerate(cells):
                    if 0 <= x < image.width and 0 <= y < image.height and 0 <= z < image.depth:
                        wanted[(z * image.height + y) * image.width + x] = 77 * i + 5
                count = image.width * image.height * image.depth
                stored = struct.unpack(f'<{count}I', image.contents())
                compare(f'sust.{shape}', [[i] for i in range(count)], [[s] for s in stored], [[wanted[i]] for i in range(count)])
            call('cuSurfObjectDestroy', handle)
    image = Image('2d', (6, 5), U32, 1, seed=9)
    handle = C.c_uint64()
    call('cuSurfObjectCreate', C.byref(handle), C.byref(image.resource))
    given = [(i % 6 * 4, i // 6 % 5, 0, 0) for i in range(90)]
    run(entry('k', 'sured.b.add.2d.u32.zero [h, {x, y}], i;'), 'k', handle.value, given)
    stored = struct.unpack('<30I', image.contents())
    wanted = [(image.values[i] + sum(range(i, 90, 30))) & 0xffffffff for i in range(30)]
    compare('sured.add', [[i] for i in range(30)], [[s] for s in stored], [[w] for w in wanted])


def references():
    """Reads through the variables of a module."""
    text = '.global .texref T;\n.global .surfref S;\n' + entry(
        'k', 'tex.2d.v4.f32.f32 {r0, r1, r2, r3}, [T, {x, y}];') + entry(
        'fetch', 'tex.1d.v4.f32.s32 {r0, r1, r2, r3}, [T, {x}];') + entry(
        'load', 'suld.b.2d.b32.clamp r0, [S, {x, y}];') + entry(
        'four', 'tex.2d.v4.f32.f32 {r0, r1, r2, r3}, [T, {x, y, x, x}];') + entry(
        'held', 'mov.u64 h, T; tex.2d.v4.f32.f32 {r0, r1, r2, r3}, [h, {x, y}];')
    function(text, 'k')
    texture, surface = C.c_void_p(), C.c_void_p()
    call('cuModuleGetTexRef', C.byref(texture), modules[text], b'T')
    call('cuModuleGetSurfRef', C.byref(surface), modules[text], b'S')
    print('cuModuleGetTexRef of a missing name', code('cuModuleGetTexRef', C.byref(C.c_void_p()), modules[text], b'no'))
    values = [C.c_uint(99) for _ in range(6)]
    called = [code('cuTexRefGetAddressMode', C.byref(values[0]), texture, 0), code('cuTexRefGetFilterMode', C.byref(values[1]), texture),
              code('cuTexRefGetFlags', C.byref(values[2]), texture),
              code('cuTexRefGetFormat', C.byref(values[3]), C.byref(values[4]), texture),
              code('cuTexRefGetMaxAnisotropy', C.byref(values[5]), texture)]
    print('defaults of a texture reference', called, [v.value for v in values])
    print('array of an unbound reference', code('cuTexRefGetArray', C.byref(C.c_void_p()), texture),
          code('cuTexRefGetAddress_v2', C.byref(C.c_uint64()), texture))
    image = Image('2d', (7, 5), FLOAT, 1, seed=21)
    call('cuTexRefSetArray', texture, image.array, 1)
    call('cuTexRefSetFilterMode', texture, LINEAR)
    call('cuTexRefSetAddressMode', texture, 0, MIRROR)
    call('cuTexRefSetAddressMode', texture, 1, WRAP)
    call('cuTexRefSetFlags', texture, NORMALIZED)
    call('cuSurfRefSetArray', surface, image.array, 0)
    rng = random.Random(2)
    coordinates = [(single(bits(rng.uniform(0, 1))), single(bits(rng.uniform(0, 1)))) for _ in range(40)]
    given = [(bits(x), bits(y), 0, 0) for x, y in coordinates]
    wanted = []
    for c in coordinates:
        # Inside of the edges, the addressing modes make no difference.
        inside = all(0.5 <= v * n < n - 0.5 for v, n in zip(c, (7, 5)))
        wanted.append(words(expected(image, c, 2, CLAMP, LINEAR, NORMALIZED), image, 0) if inside else None)
    for name in ('k', 'four', 'held'):
        compare(f'texture reference, {name}', coordinates, run(text, name, 0, given), wanted)
    flat = Image('linear', (50,), FLOAT, 1, seed=22)
    offset = C.c_size_t(7)
    call('cuTexRefSetFormat', texture, FLOAT, 1)
    call('cuTexRefSetAddress_v2', C.byref(offset), texture, C.c_uint64(flat.address), C.c_size_t(200))
    cells = [(i, 0, 0, 0) for i in range(52)]
    wanted = [(bits(flat.values[i]) if i < 50 else 0, *[bits(v) for v in MISSING[1:]]) for i in range(52)]
    wanted[50:] = [None] * 2
    compare(f'texture reference on linear memory, offset {offset.value}', cells, run(text, 'fetch', 0, cells), wanted)
    cells = [(4 * x, y, 0, 0) for x in range(7) for y in range(5)]
    wanted = [(bits(image.values[c[1] * 7 + c[0] // 4]), 0, 0, 0) for c in cells]
    compare('surface reference', cells, run(text, 'load', 0, cells), wanted)


def answers():
    """Prints the codes of unusual calls."""
    image = Image('2d', (7, 5), U8, 1)
    handle, made = C.c_uint64(), Texture()
    create = lambda: code('cuTexObjectCreate', C.byref(handle), C.byref(image.resource), C.byref(made), None)
    made.filter, made.flags = LINEAR, INTEGER
    print('linear filter of integers', create())
    made.filter, made.flags = 2, 0
    print('filter 2', create())
    made.filter, made.address[0] = 0, 4
    print('address mode 4', create())
    made.address[0] = 0
    made.flags = 0x80
    print('flags 0x80', create())
    made.flags = 0
    print('destroy of 0', code('cuTexObjectDestroy', C.c_uint64(0)))
    print('destroy of 0x1234567890', code('cuSurfObjectDestroy', C.c_uint64(0x1234567890)))
    flat = Image('linear', (64,), FLOAT, 1)
    flat.resource.words[0] += 4
    made = Texture()
    print('linear memory off by 4', code('cuTexObjectCreate', C.byref(handle), C.byref(flat.resource), C.byref(made), None))
    flat.resource.words[0] -= 4
    print('surface of linear memory', code('cuSurfObjectCreate', C.byref(handle), C.byref(flat.resource)))
    made.filter = LINEAR
    print('linear memory, linear filter', code('cuTexObjectCreate', C.byref(handle), C.byref(flat.resource), C.byref(made), None))
    array = C.c_void_p()
    for channels in (0, 1, 2, 3, 4, 5):
        print('array of', channels, 'channels', code('cuArray3DCreate_v2', C.byref(array), C.byref(Array(8, 8, 0, FLOAT, channels, 0))))
    for size in ((0, 0, 0), (8, 0, 4), (0, 8, 0), (131072 * 2, 0, 0), (8, 8, 40000)):
        print('array of size', size, code('cuArray3DCreate_v2', C.byref(array), C.byref(Array(*size, FLOAT, 1, 0))))
    print('array of format 7', code('cuArray3DCreate_v2', C.byref(array), C.byref(Array(8, 8, 0, 7, 1, 0))))
    call('cuArrayCreate_v2', C.byref(array), (C.c_uint64 * 3)(8, 4, FLOAT | 1 << 32))
    print('destroy', code('cuArrayDestroy', array), 'again', code('cuArrayDestroy', array) if not PRINT else '')
    print('row copy beyond the end', code('cuMemcpyHtoA_v2', image.array, C.c_size_t(4), b'0123456789', C.c_size_t(4)))
    print('row copy', code('cuMemcpyHtoA_v2', image.array, C.c_size_t(2), b'0123456789', C.c_size_t(5)))
    print('copy over two rows', code('cuMemcpyHtoA_v2', image.array, C.c_size_t(5), b'0123456789', C.c_size_t(4)))
    print('rows', image.contents())


def trap():
    """Prints the code of a launch that loads outside of a surface with `.trap`. The context fails."""
    image = Image('2d', (6, 5), U32, 1, seed=9)
    handle = C.c_uint64()
    call('cuSurfObjectCreate', C.byref(handle), C.byref(image.resource))
    try:
        run(entry('k', 'suld.b.2d.b32.trap r0, [h, {x, y}];'), 'k', handle.value, [(400, 0, 0, 0)])
    except AssertionError as error:
        print('outside with .trap:', error)


for part in (formats, modes, special, gathered, surfaces, references, answers, trap):
    try:
        part()
    except AssertionError as error:
        wrong += 1
        print(part.__name__, 'FAILED', error)
print(f'{wrong} results differ from the formulas')
if not PRINT:
    assert wrong == 0
