//! Textures and surfaces.

use super::entry::versions::*;
use super::entry::{InstructionForms, instruction};
use crate::ptx::cost::{ClassRule::*, InstructionClass as Class, Rate};
use crate::ptx::form::row;
use crate::ptx::words::Opcode;

#[rustfmt::skip]
pub(super) const INSTRUCTIONS: &[InstructionForms] = &[
    instruction(Opcode::Istypep, Always(Class::Compare), Rate::Half, "p = whether a is a handle of the given object type", &[
        row(30, V40, "istypep.type p, %a:u64; .type = {.texref, .samplerref, .surfref}"),
    ]),

    instruction(Opcode::Suld, Always(Class::GlobalLoad), Rate::Global, "d = the surface elements at the given location; the first coordinate is in bytes. Out of bounds, `.trap` faults, `.clamp` reads the nearest element, `.zero` reads 0", &[
        row(20, V15, "suld.b.shape{.cop}{.vec}.type.outside d:vec, [surface, c:s32]; .shape = flat; .cop = {.ca, .cg, .cs, .cv}; .vec = {.v2, .v4}; .type = {.b8, .b16, .b32}; .outside = outside"),
        row(20, V15, "suld.b.shape{.cop}{.vec}.type.outside d:vec, [surface, c:s32]; .shape = flat; .cop = {.ca, .cg, .cs, .cv}; .vec = {.v2}; .type = {.b64}; .outside = outside"),
    ]),

    instruction(Opcode::Suq, Always(Class::Move), Rate::Full, "d = the queried property of a surface", &[
        row(20, V15, "suq.query.b32 d, [surface]; .query = {.width, .height, .depth, .channel_data_type, .channel_order}"),
        row(20, V41, "suq.array_size.b32 d, [surface]"),
        row(20, V42, "suq.memory_layout.b32 d, [surface]"),
    ]),

    instruction(Opcode::Sured, Always(Class::Atomic), Rate::Atomic, "As `red`, on a surface. With `.p` the coordinate is in elements instead of bytes", &[
        row(20, V20, "sured.b.op.shape.type.outside [surface, c:s32], b; .op = {.add, .min, .max}; .shape = {.1d, .2d, .3d}; .type = word; .outside = outside"),
        row(20, V20, "sured.b.add.shape.u64.outside [surface, c:s32], b; .shape = {.1d, .2d, .3d}; .outside = outside"),
        row(20, V20, "sured.b.op.shape.b32.outside [surface, c:s32], b; .op = {.and, .or}; .shape = {.1d, .2d, .3d}; .outside = outside"),
        row(20, V20, "sured.p.op.shape.b32.outside [surface, c:s32], b; .op = {.add, .min, .max, .and, .or}; .shape = {.1d, .2d, .3d}; .outside = outside"),
        row(50, V81, "sured.b.op.shape.type.outside [surface, c:s32], b; .op = {.min, .max}; .shape = {.1d, .2d, .3d}; .type = double_word; .outside = outside"),
        row(50, V81, "sured.p.op.shape.b64.outside [surface, c:s32], b; .op = {.min, .max}; .shape = {.1d, .2d, .3d}; .outside = outside"),
    ]),

    instruction(Opcode::Sust, Always(Class::GlobalStore), Rate::Global, "Stores b to the surface elements at the given location, with the rules of `suld`. `.p` converts to the surface format", &[
        row(20, V15, "sust.b.shape{.cop}{.vec}.type.outside [surface, c:s32], b:vec; .shape = flat; .cop = {.wb, .cg, .cs, .wt}; .vec = {.v2, .v4}; .type = {.b8, .b16, .b32}; .outside = outside"),
        row(20, V15, "sust.b.shape{.cop}{.vec}.type.outside [surface, c:s32], b:vec; .shape = flat; .cop = {.wb, .cg, .cs, .wt}; .vec = {.v2}; .type = {.b64}; .outside = outside"),
        row(20, V15, "sust.p.shape{.cop}{.vec}.type.outside [surface, c:s32], b:vec; .shape = flat; .cop = {.wb, .cg, .cs, .wt}; .vec = {.v2, .v4}; .type = {.b32}; .outside = outside"),
    ]),

    instruction(Opcode::Tex, Always(Class::GlobalLoad), Rate::Global, "d = the filtered texture at the given location, from the `.base` level, an explicit `.level`, or the level for given derivatives (`.grad`). e is an offset in texels, f a depth to compare with. p = whether all texels are resident", &[
        row(10, V10, "tex{.base}.shape.v4.dtype.ctype d:dtypex4{|p}, [texture, c:ctype]{, e:offsets}; .shape = flat; .dtype = texel; .ctype = {.s32, .f32}"),
        row(20, V20, "tex{.base}.shape.v4.dtype.f32 d:dtypex4{|p}, [texture, c:f32]{, f:f32}; .shape = {.cube, .acube}; .dtype = texel"),
        row(20, V20, "tex{.base}.shape.v4.dtype.f32 d:dtypex4{|p}, [texture, c:f32], f:f32; .shape = depth_shape; .dtype = texel"),
        row(20, V20, "tex{.base}.shape.v4.dtype.f32 d:dtypex4{|p}, [texture, c:f32], e:offsets, f:f32; .shape = depth_shape; .dtype = texel"),
        row(30, V32, "tex{.base}.shape.v4.dtype.s32 d:dtypex4{|p}, [texture, c:s32]{, e:offsets}; .shape = {.2dms, .a2dms}; .dtype = texel"),
        row(53, V42, "tex{.base}.shape.v2.f16x2.ctype d:f16x2x2{|p}, [texture, c:ctype]{, e:offsets}; .shape = flat; .ctype = {.s32, .f32}"),
        row(53, V42, "tex{.base}.shape.v2.f16x2.f32 d:f16x2x2{|p}, [texture, c:f32]{, f:f32}; .shape = {.cube, .acube}"),
        row(53, V42, "tex{.base}.shape.v2.f16x2.f32 d:f16x2x2{|p}, [texture, c:f32], f:f32; .shape = depth_shape"),
        row(53, V42, "tex{.base}.shape.v2.f16x2.f32 d:f16x2x2{|p}, [texture, c:f32], e:offsets, f:f32; .shape = depth_shape"),
        row(53, V42, "tex{.base}.shape.v2.f16x2.s32 d:f16x2x2{|p}, [texture, c:s32]{, e:offsets}; .shape = {.2dms, .a2dms}"),
        row(20, V20, "tex.level.shape.v4.dtype.ctype d:dtypex4{|p}, [texture, c:ctype], lod:ctype{, e:offsets}; .shape = flat; .dtype = texel; .ctype = {.s32, .f32}"),
        row(20, V20, "tex.level.shape.v4.dtype.f32 d:dtypex4{|p}, [texture, c:f32], lod:f32{, f:f32}; .shape = {.cube, .acube}; .dtype = texel"),
        row(20, V20, "tex.level.shape.v4.dtype.f32 d:dtypex4{|p}, [texture, c:f32], lod:f32, f:f32; .shape = depth_shape; .dtype = texel"),
        row(20, V20, "tex.level.shape.v4.dtype.f32 d:dtypex4{|p}, [texture, c:f32], lod:f32, e:offsets, f:f32; .shape = depth_shape; .dtype = texel"),
        row(53, V42, "tex.level.shape.v2.f16x2.ctype d:f16x2x2{|p}, [texture, c:ctype], lod:ctype{, e:offsets}; .shape = flat; .ctype = {.s32, .f32}"),
        row(53, V42, "tex.level.shape.v2.f16x2.f32 d:f16x2x2{|p}, [texture, c:f32], lod:f32{, f:f32}; .shape = {.cube, .acube}"),
        row(53, V42, "tex.level.shape.v2.f16x2.f32 d:f16x2x2{|p}, [texture, c:f32], lod:f32, f:f32; .shape = depth_shape"),
        row(53, V42, "tex.level.shape.v2.f16x2.f32 d:f16x2x2{|p}, [texture, c:f32], lod:f32, e:offsets, f:f32; .shape = depth_shape"),
        row(20, V20, "tex.grad.shape.v4.dtype.ctype d:dtypex4{|p}, [texture, c:ctype], x:slopes, y:slopes{, e:offsets}; .shape = flat; .dtype = texel; .ctype = {.s32, .f32}"),
        row(20, V20, "tex.grad.shape.v4.dtype.f32 d:dtypex4{|p}, [texture, c:f32], x:slopes, y:slopes{, f:f32}; .shape = {.cube, .acube}; .dtype = texel"),
        row(20, V20, "tex.grad.shape.v4.dtype.f32 d:dtypex4{|p}, [texture, c:f32], x:slopes, y:slopes, f:f32; .shape = depth_shape; .dtype = texel"),
        row(20, V20, "tex.grad.shape.v4.dtype.f32 d:dtypex4{|p}, [texture, c:f32], x:slopes, y:slopes, e:offsets, f:f32; .shape = depth_shape; .dtype = texel"),
        row(53, V42, "tex.grad.shape.v2.f16x2.ctype d:f16x2x2{|p}, [texture, c:ctype], x:slopes, y:slopes{, e:offsets}; .shape = flat; .ctype = {.s32, .f32}"),
        row(53, V42, "tex.grad.shape.v2.f16x2.f32 d:f16x2x2{|p}, [texture, c:f32], x:slopes, y:slopes{, f:f32}; .shape = {.cube, .acube}"),
        row(53, V42, "tex.grad.shape.v2.f16x2.f32 d:f16x2x2{|p}, [texture, c:f32], x:slopes, y:slopes, f:f32; .shape = depth_shape"),
        row(53, V42, "tex.grad.shape.v2.f16x2.f32 d:f16x2x2{|p}, [texture, c:f32], x:slopes, y:slopes, e:offsets, f:f32; .shape = depth_shape"),
    ]),

    instruction(Opcode::Tld4, Always(Class::GlobalLoad), Rate::Global, "d = one channel of the four texels that `tex` would filter at the given location", &[
        row(20, V22, "tld4.channel.shape.v4.dtype.f32 d:dtypex4{|p}, [texture, c:f32]{, e:offsets}; .channel = {.r, .g, .b, .a}; .shape = {.2d, .a2d}; .dtype = {.u32, .s32, .f32}"),
        row(20, V22, "tld4.channel.shape.v4.dtype.f32 d:dtypex4{|p}, [texture, c:f32], f:f32; .channel = {.r, .g, .b, .a}; .shape = {.2d, .a2d}; .dtype = {.u32, .s32, .f32}"),
        row(20, V22, "tld4.channel.shape.v4.dtype.f32 d:dtypex4{|p}, [texture, c:f32], e:offsets, f:f32; .channel = {.r, .g, .b, .a}; .shape = {.2d, .a2d}; .dtype = {.u32, .s32, .f32}"),
        row(20, V43, "tld4.channel.shape.v4.dtype.f32 d:dtypex4{|p}, [texture, c:f32]{, f:f32}; .channel = {.r, .g, .b, .a}; .shape = {.cube, .acube}; .dtype = {.u32, .s32, .f32}"),
    ]),

    instruction(Opcode::Txq, Always(Class::Move), Rate::Full, "d = the queried property of a texture or sampler", &[
        row(20, V15, "txq.query.b32 d, [texture]; .query = {.width, .height, .depth, .channel_data_type, .channel_order, .normalized_coords}"),
        row(20, V41, "txq.query.b32 d, [texture]; .query = {.array_size, .num_mipmap_levels}"),
        row(20, V42, "txq.num_samples.b32 d, [texture]"),
        row(30, V43, "txq.level.query.b32 d, [texture], lod:u32; .query = {.width, .height, .depth}"),
        row(20, V15, "txq.query.b32 d, [sampler]; .query = {.filter_mode, .addr_mode_0, .addr_mode_1, .addr_mode_2}"),
        row(20, V15, "txq.query.b32 d, [own]; .query = {.filter_mode, .addr_mode_0, .addr_mode_1, .addr_mode_2}"),
        row(20, V22, "txq.force_unnormalized_coords.b32 d, [sampler]"),
    ]),
];
