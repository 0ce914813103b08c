//! Values and their types.

use kernel_dsl::prelude::*;

pub const ALL: &[&[super::Construct]] = &[numbers::ALL, compound::ALL, options::ALL, results::ALL];

const A: [u32; 7] = [0, 1, 3, 7, 8, 100, 255];

values! { numbers, "Types", (a: u32 = A, b: u32 = [1, 2, 5]):
    "`bool`" fn truth -> u32 { let p: bool = a > b; let q = !p ^ (a == 3); (p & q | q) as u32 }
    "`u8`, `i8`" fn bytes -> u32 { let (x, y) = (a as u8, b as i8); (x / 2 + (y * 2) as u8) as u32 }
    "`u16`, `i16`" fn shorts -> u32 { let (x, y) = (a as u16, b as i16); (x * 3 + (y - 9).unsigned_abs()) as u32 }
    "`u32`, `i32`" fn words -> u32 { let (x, y): (u32, i32) = (a * 7, b as i32 - 3); x + y.unsigned_abs() }
    "`u64`, `i64`" fn longs -> u64 { let (x, y): (u64, i64) = (a as u64 * 5_000_000_000, b as i64); x + y as u64 }
    "`u128`" fn quadruple -> u64 { let x = a as u128 * 5_000_000_000_000_000_000_000; (x >> 64) as u64 ^ x as u64 }
    "`usize`" fn index -> u32 { let n: usize = a as usize + 7; (n / 2) as u32 }
    "`f32`" fn single -> f32 { let x: f32 = a as f32; x / 4.0 }
    "`f64`" fn double -> f64 { let x: f64 = a as f64; x / 3.0 }
    "`f16`" fn half -> f16 { let x: f16 = f16::from_f32(a as f32); x + x }
    "`bf16`" fn brain -> bf16 { let x: bf16 = bf16::from_f32(a as f32); x * x }
}

values! { compound, "Types", (a: u32 = A, b: u32 = [1, 2, 5]):
    "`(A, B)`" fn tuple -> u32 { let (x, y) = (a, b as f32); x + y as u32 }
    "`t.0`" fn tuple_field -> u32 { let mut t = (a, (b, 3u32)); t.1.0 += t.0; t.1.0 * t.1.1 }
    "`[T; N]`" fn array -> u32 { let v = [a, b, a + b]; v[0] + v[1] * v[2] }
    "`[x; N]`" fn repeated -> u32 { let mut v = [a; 4]; v[2] += b; v[0] + v[1] + v[2] + v[3] }
    "`[[T; N]; M]`" fn nested -> u32 { let mut v = [[0u32; 2]; 2]; v[1][0] = a; v[0][1] = b; v[1][0] * 10 + v[0][1] }
    "`v.len()`" fn array_len -> u32 { let v = [a, b, 1]; v.len() as u32 + v[0] }
    "`v.map(|x| …)`" fn array_map -> u32 { let v = [a, b].map(|x| x * 3); v[0] + v[1] }
    "`std::array::from_fn(|i| …)`" fn from_fn -> u32 { let v: [u32; 3] = std::array::from_fn(|i| a * i as u32); v[1] + v[2] }
    "`t == u`, of tuples and arrays" fn same -> u32 { ((a, b) == (b, 1)) as u32 + 2 * ([a, b] != [b, 5]) as u32 }
    "`t < u`, of tuples and arrays" fn before -> u32 { ((a, b) < (7, 2)) as u32 }
    "`size_of::<T>()`" fn sizes -> u32 { a + size_of::<f64>() as u32 + size_of::<[u16; 3]>() as u32 }
    "`const NAME: T = …;`" fn constant -> u32 { const FACTOR: u32 = 3 * 4; a * FACTOR }
    "`&mut x`" fn reference -> u32 { let mut c = a; let r = &mut c; *r += b; c }
}

values! { options, "Options", (a: u32 = A, b: u32 = [1, 2, 5]):
    "`Some(x)`, `None`" fn some -> u32 { let o = if a > b { Some(a) } else { None }; match o { Some(x) => x, None => 7 } }
    "`o == p`" fn same -> u32 { let o = if a > b { Some(a) } else { None }; (o == Some(7)) as u32 }
    "`o == p`, of references" fn same_target -> u32 { let o = if a > b { 1 } else { 2 }; (Some(&o) == Some(&b)) as u32 }
    "`o.is_some()`" fn is_some -> u32 { let o = if a > b { Some(a) } else { None }; o.is_some() as u32 }
    "`o.is_none()`" fn is_none -> u32 { let o = if a > b { Some(a) } else { None }; o.is_none() as u32 }
    "`o.is_some_and(|x| …)`" fn is_some_and -> u32 { let o = if a > b { Some(a) } else { None }; o.is_some_and(|x| x % 2 == 0) as u32 }
    "`o.unwrap_or(x)`" fn unwrap_or -> u32 { let o = if a > b { Some(a) } else { None }; o.unwrap_or(b) }
    "`o.map(|x| …)`" fn map -> u32 { let o = if a > b { Some(a) } else { None }; o.map(|x| x * 2).unwrap_or(9) }
    "`o.map_or(x, |x| …)`" fn map_or -> u32 { let o = if a > b { Some(a) } else { None }; o.map_or(b, |x| x + 1) }
    "`o.and_then(|x| …)`" fn and_then -> u32 { let o = if a > b { Some(a) } else { None }; o.and_then(|x| if x > 5 { Some(x - 5) } else { None }).unwrap_or(3) }
    "`o.ok_or(e)`" fn ok_or -> u32 { let o = if a > b { Some(a) } else { None }; match o.ok_or(b + 1) { Ok(x) => x, Err(e) => e } }
    "`o?`" fn question -> u32 { let f = |x: u32| -> Option<u32> { let y = x.checked_sub(b)?; Some(y * 3) }; f(a).unwrap_or(7) }
}

values! { results, "Results", (a: u32 = A, b: u32 = [1, 2, 5]):
    "`Ok(x)`, `Err(e)`" fn ok -> u32 { let r = if a > b { Ok(a) } else { Err(b) }; match r { Ok(x) => x * 2, Err(e) => e } }
    "`r == s`" fn same -> u32 { let r = if a > b { Ok(a) } else { Err(b) }; (r == Err(2)) as u32 }
    "`r?`" fn question -> u32 { let f = |x: u32| -> Result<u32, u32> { let y = x.checked_sub(b).ok_or(x)?; Ok(y * 3) }; f(a).unwrap_or(7) }
    "`r.is_ok()`" fn is_ok -> u32 { let r = if a > b { Ok(a) } else { Err(b) }; r.is_ok() as u32 }
    "`r.is_err()`" fn is_err -> u32 { let r = if a > b { Ok(a) } else { Err(b) }; r.is_err() as u32 }
    "`r.is_ok_and(|x| …)`" fn is_ok_and -> u32 { let r = if a > b { Ok(a) } else { Err(b) }; r.is_ok_and(|x| x % 2 == 0) as u32 }
    "`r.ok()`" fn option -> u32 { let r = if a > b { Ok(a) } else { Err(b) }; match r.ok() { Some(x) => x, None => 3 } }
    "`r.err()`" fn error -> u32 { let r = if a > b { Ok(a) } else { Err(b) }; match r.err() { Some(e) => e, None => 9 } }
    "`r.unwrap_or(x)`" fn unwrap_or -> u32 { let r = if a > b { Ok(a) } else { Err(b) }; r.unwrap_or(b + 4) }
    "`r.map(|x| …)`" fn map -> u32 { let r = if a > b { Ok(a) } else { Err(b) }; r.map(|x| x * 2).unwrap_or(9) }
    "`r.map_err(|e| …)`" fn map_err -> u32 { let r = if a > b { Ok(a) } else { Err(b) }; match r.map_err(|e| e * 3) { Ok(x) | Err(x) => x } }
    "`r.map_or(x, |x| …)`" fn map_or -> u32 { let r = if a > b { Ok(a) } else { Err(b) }; r.map_or(b, |x| x + 1) }
    "`r.and_then(|x| …)`" fn and_then -> u32 { let r = if a > b { Ok(a) } else { Err(b) }; r.and_then(|x| if x > 5 { Ok(x - 5) } else { Err(1) }).unwrap_or(3) }
}
