//! Constructs for the position of a thread, and for operations of several threads.

use kernel_dsl::prelude::*;

pub const ALL: &[&[super::Construct]] = &[places::ALL, blocks::ALL, warps::ALL, groups::ALL, grids::ALL, later::ALL];

programs! { places, "Places", slices(x: &[f32], y: &mut [f32]):
    "`thread::x()`" fn thread_x {
        let i = thread::x();
        y[i] = i as f32;
    }
    "`thread::y()`" fn thread_y {
        let i = thread::y();
        y[thread::x()] = i as f32;
    }
    "`thread::z()`" fn thread_z {
        let i = thread::z();
        y[thread::x()] = i as f32;
    }
    "`thread::index()`" fn thread_index {
        let i = thread::index();
        y[i] = 1.0;
    }
    "`thread::local::<[T; N]>()`" fn thread_local {
        let t = thread::x();
        let mut own = thread::local::<[u32; 8]>();
        for k in 0..8 {
            own[k] = (k * k) as u32;
        }
        y[t] = own[t % 8] as f32;
    }
    "`stack[i] = v`" fn thread_local_write {
        let (t, v) = (thread::x(), 7u32);
        let mut stack = thread::local::<[u32; 8]>();
        for i in rolled(0..8) {
            stack[i] = v;
        }
        y[t] = stack[t % 8] as f32;
    }
    "`stack[i]`" fn thread_local_read {
        let t = thread::x();
        let mut own = thread::local::<[u32; 8]>();
        for k in rolled(0..8) {
            own[k] = (k * k) as u32;
        }
        let (stack, i) = (&own, t % 8);
        let v = stack[i];
        y[t] = v as f32;
    }
    "`block::x()`" fn block_x {
        let i = block::x();
        y[thread::x()] = i as f32;
    }
    "`block::y()`" fn block_y {
        let i = block::y();
        y[thread::x()] = i as f32;
    }
    "`block::z()`" fn block_z {
        let i = block::z();
        y[thread::x()] = i as f32;
    }
    "`block::dim_x()`" fn block_dim_x {
        let n = block::dim_x();
        y[thread::x()] = n as f32;
    }
    "`block::dim_y()`" fn block_dim_y {
        let n = block::dim_y();
        y[thread::x()] = n as f32;
    }
    "`block::dim_z()`" fn block_dim_z {
        let n = block::dim_z();
        y[thread::x()] = n as f32;
    }
    "`block::threads()`" fn block_threads {
        let n = block::threads();
        y[thread::x()] = n as f32;
    }
    "`grid::dim_x()`" fn grid_dim_x {
        let n = grid::dim_x();
        y[thread::x()] = n as f32;
    }
    "`grid::dim_y()`" fn grid_dim_y {
        let n = grid::dim_y();
        y[thread::x()] = n as f32;
    }
    "`grid::dim_z()`" fn grid_dim_z {
        let n = grid::dim_z();
        y[thread::x()] = n as f32;
    }
    "`grid::index()`" fn grid_index {
        let i = grid::index();
        y[i] = 1.0;
    }
    "`grid::threads()`" fn grid_threads {
        let n = grid::threads();
        y[thread::x()] = n as f32;
    }
    "`warp::lane()`" fn lane {
        let i = warp::lane();
        y[thread::x()] = i as f32;
    }
    "`warp::index()`" fn warp_index {
        let i = warp::index();
        y[thread::x()] = i as f32;
    }
    "`warp::count()`" fn warp_count {
        let n = warp::count();
        y[thread::x()] = n as f32;
    }
    "`block::stride(n)`" fn block_stride {
        let mut s = 0.0;
        for i in block::stride(40) { s += x[i]; }
        y[thread::x()] = s;
    }
    "`grid::stride(n)`" fn grid_stride {
        let mut s = 0.0;
        for i in grid::stride(x.len()) { s += x[i]; }
        y[thread::x()] = s;
    }
    "`block::share(shape)`" fn share {
        let mut s = 0.0;
        for [r, c] in block::share([5, 20]) { s += x[(7 * r + c) % 64]; }
        y[thread::x()] = s;
    }
    "`target::SM`" fn target_sm {
        let new = target::SM >= 70;
        y[thread::x()] = if new { 1.0 } else { 2.0 };
    }
}

programs! { blocks, "Blocks", slices(x: &[u32], y: &mut [u32]):
    "`block::sync()`" fn sync {
        let t = thread::x();
        let mut s = Shared::<u32, 1>::new([64]);
        s[t] = x[t];
        block::sync();
        y[t] = s[63 - t];
    }
    "`block::sum(x)`" fn sum {
        let own = x[thread::x()];
        let all = block::sum(own);
        y[thread::x()] = all;
    }
    "`block::max(x)`" fn max {
        let own = x[thread::x()];
        let all = block::max(own);
        y[thread::x()] = all;
    }
    "`block::min(x)`" fn min {
        let own = x[thread::x()];
        let all = block::min(own);
        y[thread::x()] = all;
    }
    "`block::reduce(x, |a, b| …)`" fn reduce {
        let own = x[thread::x()];
        let all = block::reduce(own, |a, b| a ^ b);
        y[thread::x()] = all;
    }
    "`block::scan(x, zero, |a, b| …)`" fn scan {
        let own = x[thread::x()];
        let (before, total) = block::scan(own, 0, |a, b| a + b);
        y[thread::x()] = before * 100 + total;
    }
    "`block::broadcast(x, thread)`" fn broadcast {
        let own = x[thread::x()];
        let his = block::broadcast(own, 40);
        y[thread::x()] = his;
    }
    "`block::all(p)`" fn all {
        let own = x[thread::x()];
        let p = block::all(own > 0);
        y[thread::x()] = p as u32;
    }
    "`block::any(p)`" fn any {
        let own = x[thread::x()];
        let p = block::any(own == 5);
        y[thread::x()] = p as u32;
    }
    "`block::count(p)`" fn count {
        let own = x[thread::x()];
        let n = block::count(own > 5);
        y[thread::x()] = n as u32;
    }
}

programs! { warps, "Warps", slices(x: &[u32], y: &mut [u32]):
    "`warp::sync()`" fn sync {
        let own = x[thread::x()];
        warp::sync();
        y[thread::x()] = own;
    }
    "`warp::sum(x)`" fn sum {
        let own = x[thread::x()];
        let all = warp::sum(own);
        y[thread::x()] = all;
    }
    "`warp::max(x)`" fn max {
        let own = x[thread::x()];
        let all = warp::max(own);
        y[thread::x()] = all;
    }
    "`warp::min(x)`" fn min {
        let own = x[thread::x()];
        let all = warp::min(own);
        y[thread::x()] = all;
    }
    "`warp::reduce(x, |a, b| …)`" fn reduce {
        let own = x[thread::x()];
        let all = warp::reduce(own, |a, b| a ^ b);
        y[thread::x()] = all;
    }
    "`warp::scan(x, |a, b| …)`" fn scan {
        let own = x[thread::x()];
        let upto = warp::scan(own, |a, b| a + b);
        y[thread::x()] = upto;
    }
    "`warp::exclusive_scan(x, zero, |a, b| …)`" fn exclusive_scan {
        let own = x[thread::x()];
        let before = warp::exclusive_scan(own, 0, |a, b| a + b);
        y[thread::x()] = before;
    }
    "`warp::broadcast(x, lane)`" fn broadcast {
        let own = x[thread::x()];
        let his = warp::broadcast(own, 9);
        y[thread::x()] = his;
    }
    "`warp::shuffle(x, lane)`" fn shuffle {
        let own = x[thread::x()];
        let his = warp::shuffle(own, 31 - warp::lane());
        y[thread::x()] = his;
    }
    "`warp::shuffle_xor(x, mask)`" fn shuffle_xor {
        let own = x[thread::x()];
        let his = warp::shuffle_xor(own, 5);
        y[thread::x()] = his;
    }
    "`warp::shuffle_up(x, by)`" fn shuffle_up {
        let own = x[thread::x()];
        let his = warp::shuffle_up(own, 2);
        y[thread::x()] = his.unwrap_or(7);
    }
    "`warp::shuffle_down(x, by)`" fn shuffle_down {
        let own = x[thread::x()];
        let his = warp::shuffle_down(own, 2);
        y[thread::x()] = his.unwrap_or(7);
    }
    "`warp::ballot(p)`" fn ballot {
        let own = x[thread::x()];
        let mask = warp::ballot(own > 9);
        y[thread::x()] = mask;
    }
    "`warp::all(p)`" fn all {
        let own = x[thread::x()];
        let p = warp::all(own > 0);
        y[thread::x()] = p as u32;
    }
    "`warp::any(p)`" fn any {
        let own = x[thread::x()];
        let p = warp::any(own == 5);
        y[thread::x()] = p as u32;
    }
    "`warp::group::<N>()`" fn group {
        let own = x[thread::x()];
        let g = warp::group::<8>();
        y[thread::x()] = own + g.sum(own);
    }
}

programs! { groups, "Groups of lanes", slices(x: &[u32], y: &mut [u32]):
    "`g.lane()`" fn lane {
        let g = warp::group::<8>();
        let i = g.lane();
        y[thread::x()] = i as u32;
    }
    "`g.index()`" fn index {
        let g = warp::group::<8>();
        let i = g.index();
        y[thread::x()] = i as u32;
    }
    "`g.sum(x)`" fn sum {
        let (g, own) = (warp::group::<8>(), x[thread::x()]);
        let all = g.sum(own);
        y[thread::x()] = all;
    }
    "`g.max(x)`" fn max {
        let (g, own) = (warp::group::<4>(), x[thread::x()]);
        let all = g.max(own);
        y[thread::x()] = all;
    }
    "`g.min(x)`" fn min {
        let (g, own) = (warp::group::<16>(), x[thread::x()]);
        let all = g.min(own);
        y[thread::x()] = all;
    }
    "`g.reduce(x, |a, b| …)`" fn reduce {
        let (g, own) = (warp::group::<8>(), x[thread::x()]);
        let all = g.reduce(own, |a, b| a ^ b);
        y[thread::x()] = all;
    }
    "`g.scan(x, |a, b| …)`" fn scan {
        let (g, own) = (warp::group::<8>(), x[thread::x()]);
        let upto = g.scan(own, |a, b| a + b);
        y[thread::x()] = upto;
    }
    "`g.exclusive_scan(x, zero, |a, b| …)`" fn exclusive_scan {
        let (g, own) = (warp::group::<8>(), x[thread::x()]);
        let before = g.exclusive_scan(own, 0, |a, b| a + b);
        y[thread::x()] = before;
    }
    "`g.broadcast(x, lane)`" fn broadcast {
        let (g, own) = (warp::group::<8>(), x[thread::x()]);
        let his = g.broadcast(own, 3);
        y[thread::x()] = his;
    }
    "`g.shuffle(x, lane)`" fn shuffle {
        let (g, own) = (warp::group::<8>(), x[thread::x()]);
        let his = g.shuffle(own, 7 - warp::lane() % 8);
        y[thread::x()] = his;
    }
    "`g.shuffle_xor(x, mask)`" fn shuffle_xor {
        let (g, own) = (warp::group::<8>(), x[thread::x()]);
        let his = g.shuffle_xor(own, 5);
        y[thread::x()] = his;
    }
    "`g.shuffle_up(x, by)`" fn shuffle_up {
        let (g, own) = (warp::group::<8>(), x[thread::x()]);
        let his = g.shuffle_up(own, 2);
        y[thread::x()] = his.unwrap_or(7);
    }
    "`g.shuffle_down(x, by)`" fn shuffle_down {
        let (g, own) = (warp::group::<8>(), x[thread::x()]);
        let his = g.shuffle_down(own, 2);
        y[thread::x()] = his.unwrap_or(7);
    }
    "`g.ballot(p)`" fn ballot {
        let (g, own) = (warp::group::<8>(), x[thread::x()]);
        let mask = g.ballot(own > 9);
        y[thread::x()] = mask;
    }
    "`g.all(p)`" fn all {
        let (g, own) = (warp::group::<8>(), x[thread::x()]);
        let p = g.all(own > 2);
        y[thread::x()] = p as u32;
    }
    "`g.any(p)`" fn any {
        let (g, own) = (warp::group::<8>(), x[thread::x()]);
        let p = g.any(own == 5);
        y[thread::x()] = p as u32;
    }
}

programs! { grids, "The grid", (cooperative) slices(x: &[u32], y: &mut [u32]):
    "`grid::sync()`" fn sync {
        let own = x[thread::x()];
        grid::sync();
        y[thread::x()] = own;
    }
}

programs! { later, "Warps of later targets", (target = sm_70) slices(x: &[u32], y: &mut [u32]):
    "`warp::match_any(x)`" fn match_any {
        let own = x[thread::x()] % 5;
        let mask = warp::match_any(own);
        y[thread::x()] = mask;
    }
}
