//! Views, shared memory, copies, warps. Kernels run with views of 5 rows and 37 columns.

use kernel_dsl::prelude::*;

#[device]
fn first_of(row: View<f32, 1>, i: usize) -> f32 {
    if i < row.len() { row[i] } else { 0.0 }
}

#[device]
fn from_row(c: bool, x: View<f32, 2>) -> View<f32, 2> {
    if c {
        return x;
    }
    x.offset((1, 0))
}

witnessed! {
    #[kernel(block = 32, grid = 1)]
    fn views_that_change(x: View<f32, 2>, mut y: ViewMut<f32, 2>) {
        let i = thread::x();
        let mut v = x.offset((0, i));
        let mut sum = 0.0;
        for _ in 0..8 {
            sum += v.get((0, 0)).unwrap_or(0.5);
            v = v.offset((1, 2));
        }
        let row = if i < x.rows() { Some(x.at(i)) } else { None };
        let rows = [x.at(0), x.at(1)];
        let mut t = (rows[0], 1.0);
        t.0 = rows[1];
        t.1 += t.0[i];
        let mut k = 0;
        let found = loop {
            let w = x.offset((0, k));
            if w[(0, 0)] > 4.0 || k == 8 {
                break w;
            }
            k += 1;
        };
        let later;
        if i % 2 == 0 {
            later = x.offset((1, 0));
        } else {
            later = x.offset((2, 1));
        }
        y = y.offset((0, i));
        y[(0, 0)] = sum
            + row.map_or(0.25, |r| r[1])
            + rows[0][0]
            + t.1
            + found[(1, 1)]
            + later[(0, 3)]
            + from_row(sum > 9.0, x)[(0, i)];
    }

    #[kernel(block = 32, grid = 1)]
    fn compound_elements(x: View<f32, 2>, mut y: ViewMut<f32, 2>) {
        let i = thread::x();
        let mut s = Shared::<f32, 2>::new([2, 32]);
        s[(0, i)] = x[(1, i)];
        s[[1, i]] = 3.0;
        s[(0, i)] += s[(1, i)];
        y[(0, i)] = s[(0, i)];
        y[(0, i)] *= 2.0;
        y[[1, i]] = -y[(0, i)];
    }

    #[kernel(block = 32, grid = 1)]
    fn moved_views(x: View<f32, 2>, mut y: ViewMut<f32, 2>) {
        let i = thread::x();
        let tail = x.offset((2, 30));
        let row = x.at(3);
        let rest = row.offset(20);
        let mut out = y.offset((1, 0));
        if i < tail.cols() {
            out[(0, i)] = tail[(1, i)];
        }
        out[(1, i)] = first_of(rest, i) + (tail.rows() * 100 + tail.dim(1) + rest.len()) as f32;
        if x.offset((9, 0)).is_empty() && !row.is_empty() {
            y[(0, i)] = first_of(x.at(4), i);
        }
    }

    #[kernel(block = 32, grid = 1)]
    fn chosen_views(x: View<f32, 2>, mut y: ViewMut<f32, 2>) {
        let i = thread::x();
        let row = if i % 2 == 0 { x.at(0) } else { x.offset((1, 1)).at(2) };
        y[(0, i)] = row[i];
        let (a, k) = if i > 7 { (x.at(1), 0) } else { (x.at(2), 1) };
        y[(1, i)] = a[i + k];
    }

    #[kernel(block = 32, grid = 1)]
    fn chosen_shared(x: View<f32, 2>, mut y: ViewMut<f32, 2>) {
        let s = Shared::<f32, 2>::new([2, 32]);
        s.copy_from(x);
        block::sync();
        let second = s.at(1);
        let plane = if x.rows() > 2 { second } else { return };
        y[(0, thread::x())] = plane[31 - thread::x()];
    }

    #[kernel(block = (8, 4), grid = 1)]
    fn planes(x: View<f32, 2>, mut y: ViewMut<f32, 2>) {
        let buffers = Shared::<f32, 3>::new([2, 4, 8]);
        let mut sum = 0.0;
        for k in 0..3 {
            let mut current = buffers.at(k % 2);
            current.copy_from(x.offset((k, 8 * k)));
            block::sync();
            let row = buffers.at(k % 2).at(3 - thread::y());
            sum += row[thread::x()] + current[(thread::y(), 7 - thread::x())];
            block::sync();
            current[(thread::y(), thread::x())] = sum;
        }
        y[(thread::y(), thread::x())] = sum + (buffers.dim(0) + buffers.at(0).dim(1)) as f32;
    }

    #[kernel(block = (8, 4), grid = 1)]
    fn ragged_copies(x: View<f32, 2>, mut y: ViewMut<f32, 2>) {
        let a = Shared::<f32, 2>::new([3, 7]);
        let b = Shared::<f32, 2>::with_pitch([5, 8], 9);
        let c = Shared::<f32, 2>::padded([16, 8]);
        let d = Shared::<f32, 1>::new([45]);
        a.copy_from(x.offset((3, 33)));
        b.copy_from(x);
        c.copy_from(x.offset((1, 2)));
        d.copy_from(x.at(4));
        block::sync();
        let (i, j) = (thread::y(), thread::x());
        y[(i, j)] = if i < 3 && j < 7 { a[(i, j)] } else { -1.0 };
        y[(i, j + 8)] = b[(i + 1, j)];
        y[(i, j + 16)] = c[(i + 1, j)] + c[(4 * i, 7 - j)];
        y[(i, j + 24)] = d[8 * i + j + 12];
    }

    #[kernel(block = (16, 2, 2), grid = 1)]
    fn indices(x: View<f32, 2>, mut y: ViewMut<f32, 2>) {
        let place = thread::x() + 16 * (thread::y() + 2 * thread::z());
        let sums = thread::index() + 64 * block::threads() + block::dim_x() * block::dim_y() * block::dim_z();
        let warps = warp::index() * 1000 + warp::lane();
        let blocks = block::x() + block::y() + block::z() + grid::dim_x() + grid::dim_y() + grid::dim_z();
        let all = grid::index() + grid::threads();
        if place < x.cols() {
            y[(0, place)] = (sums + warps) as f32;
            y[(1, place)] = (blocks + all) as f32;
        }
    }

    #[kernel(block = 32, grid = 1)]
    fn warps(x: View<f32, 2>, mut y: ViewMut<f32, 2>) {
        let i = warp::lane();
        let v = x[(0, i)];
        let sum = warp::sum(v);
        let most = warp::max(v as i32) + warp::min(v as i32);
        let turned = warp::shuffle(v, (i + 5) % 32) + 10.0 * warp::shuffle_xor(v, 3);
        let votes = warp::ballot(v > 8.0).count_ones();
        warp::sync();
        let any = warp::any(v > 15.9) as u32 + 2 * warp::all(v >= 0.0) as u32;
        y[(0, i)] = sum;
        y[(1, i)] = most as f32;
        y[(2, i)] = turned;
        y[(3, i)] = (votes * 4 + any) as f32;
    }
}
