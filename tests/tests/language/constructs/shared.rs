//! Shared memory.

use kernel_dsl::prelude::*;

pub const ALL: &[&[super::Construct]] = &[arrays::ALL, copies::ALL, groups::ALL];

programs! { arrays, "Shared memory", slices(x: &[f32], y: &mut [f32]):
    "`Shared::<T, R>::new(shape)`" fn new {
        let t = thread::x();
        let mut s = Shared::<f32, 1>::new([64]);
        s[t] = x[t];
        block::sync();
        y[t] = s[63 - t];
    }
    "`s[i] = v`" fn written {
        let t = thread::x();
        let mut s = Shared::<u32, 1>::new([64]);
        let (i, v) = (t ^ 1, 7);
        s[i] = v;
        block::sync();
        y[t] = s[t] as f32;
    }
    "`s[i]`" fn element {
        let t = thread::x();
        let mut own = Shared::<f32, 1>::new([64]);
        own[t] = x[t];
        block::sync();
        let (s, i) = (own, t ^ 3);
        let v = s[i];
        y[t] = v;
    }
    "`Shared::<T, R>::padded(shape)`" fn padded {
        let t = thread::x();
        let mut s = Shared::<f32, 2>::padded([8, 8]);
        s[(t / 8, t % 8)] = x[t];
        block::sync();
        y[t] = s[(t % 8, t / 8)];
    }
    "`Shared::<T, R>::with_pitch(shape, pitch)`" fn with_pitch {
        let t = thread::x();
        let mut s = Shared::<f32, 2>::with_pitch([8, 8], 9);
        s[(t / 8, t % 8)] = x[t];
        block::sync();
        y[t] = s[(t % 8, t / 8)];
    }
    "`Shared::<T, R>::swizzled(shape)`" fn swizzled {
        let t = thread::x();
        let mut s = Shared::<f32, 2>::swizzled([2, 32]);
        s[(t / 32, t % 32)] = x[t];
        block::sync();
        y[t] = s[(1 - t / 32, t % 32)];
    }
    "`Shared::<T, R>::dynamic(shape)`" fn dynamic {
        let t = thread::x();
        let mut s = Shared::<f32, 1>::dynamic([x.len()]);
        s[t] = x[t];
        block::sync();
        y[t] = s[63 - t];
    }
    "`Shared::over(other, shape)`" fn over {
        let t = thread::x();
        let mut s = Shared::<f32, 1>::new([64]);
        s[t] = x[t];
        block::sync();
        let mut p = Shared::<u32, 2>::over(s, [8, 8]);
        block::sync();
        p[(t / 8, t % 8)] = t as u32;
        block::sync();
        y[t] = p[(t % 8, t / 8)] as f32;
    }
    "`s.cast::<U>()`" fn cast {
        let t = thread::x();
        let mut s = Shared::<f32, 1>::new([64]);
        s[t] = x[t];
        block::sync();
        let bits = s.cast::<u32>();
        y[t] = (bits[63 - t] >> 20) as f32;
    }
    "`s.at(i)`" fn plane {
        let t = thread::x();
        let s = Shared::<f32, 2>::new([2, 64]);
        let mut p = s.at(1);
        p[t] = x[t];
        block::sync();
        y[t] = s[(1, 63 - t)];
    }
    "`std::mem::swap(&mut s, &mut t)`" fn switched {
        let i = thread::x();
        let mut s = Shared::<f32, 1>::new([64]);
        let mut t = Shared::<f32, 1>::new([64]);
        s[i] = x[i];
        block::sync();
        for k in rolled(0..3) {
            t[i] = s[(i + k) % 64] + 1.0;
            block::sync();
            std::mem::swap(&mut s, &mut t);
        }
        y[i] = s[i];
    }
    "`[s, t][i]`" fn chosen {
        let i = thread::x();
        let mut s = Shared::<f32, 1>::new([64]);
        let mut t = Shared::<f32, 1>::new([64]);
        s[i] = x[i];
        t[i] = -x[i];
        block::sync();
        y[i] = [s, t][i / 32][63 - i];
    }
    "`s.dim(d)`" fn dim {
        let s = Shared::<f32, 2>::new([2, 64]);
        let n = s.dim(1);
        y[thread::x()] = n as f32;
    }
    "`s.len()`" fn len {
        let s = Shared::<f32, 1>::new([64]);
        let n = s.len();
        y[thread::x()] = n as f32;
    }
    "`s.rows()`" fn rows {
        let s = Shared::<f32, 2>::new([2, 64]);
        let n = s.rows();
        y[thread::x()] = n as f32;
    }
    "`s.cols()`" fn cols {
        let s = Shared::<f32, 2>::new([2, 64]);
        let n = s.cols();
        y[thread::x()] = n as f32;
    }
    "`s.fill(value)`" fn fill {
        let s = Shared::<f32, 1>::new([100]);
        s.fill(1.5);
        block::sync();
        y[thread::x()] = s[99 - thread::x()];
    }
    "`s.get(i)`" fn get {
        let s = Shared::<f32, 1>::new([40]);
        s.fill(1.5);
        block::sync();
        let v = s.get(thread::x());
        y[thread::x()] = v.unwrap_or(0.0);
    }
    "`s.load::<4>(i)`" fn load {
        let t = thread::x();
        let mut s = Shared::<f32, 1>::new([64]);
        s[t] = x[t];
        block::sync();
        let v = s.load::<4>(t / 4 * 4);
        y[t] = v[0] + v[3];
    }
    "`s.load_or::<4>(i, other)`" fn load_or {
        let t = thread::x();
        let mut s = Shared::<f32, 1>::new([64]);
        s[t] = x[t];
        block::sync();
        let v = s.load_or::<4>(4 * t, 0.5);
        y[t] = v[0] + v[3];
    }
    "`s.store(i, values)`" fn store {
        let t = thread::x();
        let s = Shared::<f32, 1>::new([256]);
        s.store(4 * t, [1.0, 2.0, 3.0, 4.0]);
        block::sync();
        y[t] = s[t];
    }
    "`s.store_in(i, values)`" fn store_in {
        let t = thread::x();
        let s = Shared::<f32, 1>::new([64]);
        s.store_in(4 * t, [1.0, 2.0, 3.0, 4.0]);
        block::sync();
        y[t] = s[t];
    }
    "`s.fetch_add(i, value)`" fn fetch_add {
        let t = thread::x();
        let s = Shared::<u32, 1>::new([4]);
        s.fill(0);
        block::sync();
        s.fetch_add(t % 4, 3);
        block::sync();
        y[t] = s[t % 4] as f32;
    }
    "`s.fetch_max(i, value)`" fn fetch_max {
        let t = thread::x();
        let s = Shared::<u32, 1>::new([4]);
        s.fill(0);
        block::sync();
        s.fetch_max(t % 4, t as u32);
        block::sync();
        y[t] = s[t % 4] as f32;
    }
}

programs! { copies, "Copies to shared memory", views(x: View<f32, 2>, mut y: ViewMut<f32, 2>):
    "`s.copy_from(view)`" fn copy_from {
        let t = thread::x();
        let s = Shared::<f32, 2>::new([4, 16]);
        s.copy_from(x);
        block::sync();
        y[(t / 16, t % 16)] = s[(3 - t / 16, t % 16)];
    }
    "`s.copy_async(view)`" fn copy_async {
        let t = thread::x();
        let s = Shared::<f32, 2>::new([4, 16]);
        let coming = s.copy_async(x);
        coming.wait();
        block::sync();
        y[(t / 16, t % 16)] = s[(3 - t / 16, t % 16)];
    }
    "`p.wait()`" fn wait {
        let t = thread::x();
        let s = Shared::<f32, 2>::new([4, 16]);
        let p = s.copy_async(x);
        p.wait();
        block::sync();
        y[(t / 16, t % 16)] = s[(3 - t / 16, t % 16)];
    }
    "`s.copy_async_map(view, |x| …)`" fn copy_async_map {
        let t = thread::x();
        let s = Shared::<f16, 2>::new([4, 16]);
        let coming = s.copy_async_map(x, |v| f16::from_f32(v * 2.0));
        coming.wait();
        block::sync();
        y[(t / 16, t % 16)] = s[(3 - t / 16, t % 16)].to_f32();
    }
    "`p.and(q)`" fn and {
        let t = thread::x();
        let (s, u) = (Shared::<f32, 2>::new([4, 16]), Shared::<f32, 2>::new([2, 16]));
        let p = s.copy_async(x);
        let coming = p.and(u.copy_async(x));
        coming.wait();
        block::sync();
        y[(t / 16, t % 16)] = s[(3 - t / 16, t % 16)] + u[(t / 32, t % 16)];
    }
    "`Pending::none()`" fn none {
        let t = thread::x();
        let s = Shared::<f32, 2>::new([4, 16]);
        let nothing = Pending::none();
        let coming = nothing.and(s.copy_async(x));
        coming.wait();
        block::sync();
        y[(t / 16, t % 16)] = s[(3 - t / 16, t % 16)];
    }
}

programs! { groups, "Copies to shared memory", (target = sm_80) views(x: View<f32, 2>, mut y: ViewMut<f32, 2>):
    "`s.cp_async(view)`" fn cp_async {
        let t = thread::x();
        let s = Shared::<f32, 2>::new([4, 16]);
        s.cp_async(x);
        pipeline::commit();
        pipeline::wait::<0>();
        block::sync();
        y[(t / 16, t % 16)] = s[(3 - t / 16, t % 16)];
    }
    "`pipeline::commit()`" fn commit {
        let t = thread::x();
        let s = Shared::<f32, 2>::new([4, 16]);
        s.cp_async(x);
        pipeline::commit();
        pipeline::wait::<0>();
        block::sync();
        y[(t / 16, t % 16)] = s[(3 - t / 16, t % 16)];
    }
    "`pipeline::wait::<N>()`" fn wait {
        let t = thread::x();
        let s = Shared::<f32, 2>::new([4, 16]);
        s.cp_async(x);
        pipeline::commit();
        pipeline::wait::<0>();
        block::sync();
        y[(t / 16, t % 16)] = s[(3 - t / 16, t % 16)];
    }
}
