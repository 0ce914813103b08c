//! The shapes of products of `f32` in tables of measured plans.

use super::plan::{GemmPlan, ProductShape};
use crate::tuned::{self, TunableShape, TunedPlans};
use std::fmt;
use std::sync::LazyLock;

impl ProductShape {
    const LAYOUTS: [(&'static str, [bool; 2]); 4] =
        [("A·B", [false, false]), ("A·Bᵀ", [false, true]), ("Aᵀ·B", [true, false]), ("Aᵀ·Bᵀ", [true, true])];
}

/// Extents are those such as `1001x1001x1001` or `8x64x64x64`, with the batch first. The layout is
/// `A·B`, `A·Bᵀ`, `Aᵀ·B` or `Aᵀ·Bᵀ`.
impl TunableShape for ProductShape {
    type Plan = GemmPlan;

    const HEADER: &'static str = "\
# The fastest plans of products of f32 by device and shape; the evidence says how they were found.
# `kernels tune gemm --case MxNxK --device cuda:0 --write FILE` adds lines.
# device | batch x M x N x K | layout | plan | evidence
";
    const USUAL_VARIANT: &'static str = "A·B";

    fn parse(extents: &str, layout: &str) -> Result<ProductShape, String> {
        let [batch, m, n, k] = match tuned::extents(extents).as_deref() {
            Some(&[batch, m, n, k]) => [batch, m, n, k],
            Some(&[m, n, k]) => [1, m, n, k],
            _ => return Err(format!("`{extents}` are not extents; write MxNxK or BATCHxMxNxK, such as 512x6144x2048")),
        };
        let Some((_, [transpose_a, transpose_b])) = Self::LAYOUTS.into_iter().find(|(name, _)| *name == layout) else {
            let known = Self::LAYOUTS.map(|(name, _)| name).join(", ");
            return Err(format!("there is no layout `{layout}`; the layouts are {known}"));
        };
        Ok(ProductShape { batch, m, n, k, transpose_a, transpose_b })
    }

    fn variant(self) -> &'static str {
        let wanted = [self.transpose_a, self.transpose_b];
        Self::LAYOUTS.into_iter().find(|(_, layout)| *layout == wanted).map_or("A·B", |(name, _)| name)
    }

    fn unsuitable(self, plan: GemmPlan) -> Option<String> {
        plan.unsuitable(self.transpose_a, self.transpose_b).map(str::to_string)
    }

    fn built_in() -> &'static TunedPlans<ProductShape> {
        static BUILT_IN: LazyLock<TunedPlans<ProductShape>> = LazyLock::new(|| {
            // A test reads the file, so that the library never has a damaged one.
            TunedPlans::parse(include_str!("tuned.txt")).unwrap_or_default()
        });
        &BUILT_IN
    }
}

/// Formats the extents, without the layout.
impl fmt::Display for ProductShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ProductShape { batch, m, n, k, .. } = self;
        write!(f, "{batch}x{m}x{n}x{k}")
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::{GemmTile, plan};
    use super::super::{Gemm, GemmCosts};
    use super::*;
    use crate::tuned::TunedPlan;
    use kernel_dsl::compiler::launch::DeviceFacts;
    use runtime::Device;

    const SHAPE: ProductShape =
        ProductShape { batch: 1, m: 300, n: 500, k: 700, transpose_a: false, transpose_b: false };

    #[test]
    fn the_built_in_table_is_whole() {
        let text = include_str!("tuned.txt");
        let plans: TunedPlans<ProductShape> = TunedPlans::parse(text).unwrap();
        assert_eq!(plans.to_string(), text);
        assert_eq!(&plans, ProductShape::built_in());
    }

    #[test]
    fn tables_are_read_as_written() {
        let mut plans = TunedPlans::default();
        let tuned = |plan| TunedPlan { plan, evidence: "0.9 × (0.8 to 0.95), g −2 | p < 0.001".to_string() };
        plans.insert("NVIDIA H200", SHAPE, tuned(GemmPlan::Tiles(GemmTile::T64x128, 3))).unwrap();
        plans.insert("NVIDIA H100", SHAPE, tuned(GemmPlan::Tiles(GemmTile::T128x128, 1))).unwrap();
        let few = ProductShape { m: 1, transpose_b: true, ..SHAPE };
        plans.insert("GeForce GTX 1080 Ti", few, tuned(GemmPlan::GemvT(1))).unwrap();
        assert_eq!(TunedPlans::parse(&plans.to_string()).unwrap(), plans);
        // Older drivers leave out the vendor.
        assert_eq!(plans.plan("NVIDIA GeForce GTX 1080 Ti", few), Some(GemmPlan::GemvT(1)));
        assert_eq!(plans.plan("NVIDIA GeForce GTX 1080", few), None);
        assert_eq!(plans.plan("H200", SHAPE), Some(GemmPlan::Tiles(GemmTile::T64x128, 3)));
        let refused = plans.insert("H200", SHAPE, tuned(GemmPlan::GemvT(1))).unwrap_err();
        assert!(refused.starts_with("`gemv-t 1` cannot compute 1x300x500x700, A·B: "), "{refused}");
    }

    #[test]
    fn damaged_tables_name_the_line_and_the_reason() {
        let damaged = [
            ("H200 | 1x2x3x4 | A·B", "3 of the 4 fields"),
            (" | 1x2x3x4 | A·B | tiles 64x128 1", "the device has no name"),
            ("H200 | 1x2 | A·B | tiles 64x128 1", "`1x2` are not extents"),
            ("H200 | 1x2x3x-4 | A·B | tiles 64x128 1", "are not extents"),
            ("H200 | 1x2x3x4 | B·A | tiles 64x128 1", "there is no layout `B·A`"),
            ("H200 | 1x2x3x4 | A·B | tiles 64x64 1", "the tiles are 128x128, 64x128, 16x128"),
            ("H200 | 1x2x3x4 | A·B | tiles 64x128 0", "0 parts; a plan has from 1 to 32"),
            ("H200 | 1x2x3x4 | A·B | tiles 64x128 many", "`many` in the plan `tiles 64x128 many`"),
            ("H200 | 1x2x3x4 | A·B | gemv-n 3 32", "computes 1, 2, 4 or 8 rows"),
            ("H200 | 1x2x3x4 | A·B | fast", "`fast` is not a plan"),
            ("NVIDIA H200 | 7x7x7 | A·B | tiles 16x128 2", "a second plan of 1x7x7x7, A·B"),
        ];
        for (line, why) in damaged {
            let text = format!("{}\nH200 | 1x7x7x7 | A·B | tiles 64x128 1 | none\n{line}\n", ProductShape::HEADER);
            let error = TunedPlans::<ProductShape>::parse(&text).unwrap_err();
            assert_eq!(error.line, 6, "{line}");
            assert!(error.why.contains(why), "{line}: {error}");
        }
    }

    /// Multiplies by the plan of a table, and compares with the bits of that plan.
    #[test]
    fn a_table_decides_the_plan() {
        let device = Device::cpu_with_facts(DeviceFacts { multiprocessors: 4 });
        let [m, n, k] = [20, 24, 200];
        let shape = ProductShape { m, n, k, ..SHAPE };
        let usual = plan(&GemmCosts::H200, shape, 4);
        let other = GemmPlan::Tiles(GemmTile::T64x128, 1);
        assert_ne!(usual, other);
        let mut plans = TunedPlans::default();
        plans.insert("CPU", shape, TunedPlan { plan: other, evidence: String::new() }).unwrap();
        let plans: &'static TunedPlans<ProductShape> = Box::leak(Box::new(plans));
        let tuned = Gemm::new().tuned(plans);
        assert_eq!([tuned, Gemm::new()].map(|gemm| gemm.chosen(&device, 1, [m, n, k])), [other, usual]);
        // Another shape and another layout keep their plans.
        assert_eq!(tuned.chosen(&device, 2, [m, n, k]), Gemm::new().chosen(&device, 2, [m, n, k]));
        assert_eq!(
            tuned.transpose_b().chosen(&device, 1, [m, n, k]),
            Gemm::new().transpose_b().chosen(&device, 1, [m, n, k])
        );
        let numbers = |n: usize| (0..n).map(|i| ((i * 7919) % 1000) as f32 / 999.0).collect::<Vec<_>>();
        let (a, b) = (device.upload(&numbers(m * k)).unwrap(), device.upload(&numbers(k * n)).unwrap());
        let product = |gemm: Gemm| {
            let mut c = device.zeros::<f32>(m * n).unwrap();
            let (a, b) = (a.view([1, m, k]).unwrap(), b.view([1, k, n]).unwrap());
            gemm.run(&device, &a, &b, &mut c.view_mut([1, m, n]).unwrap()).unwrap();
            c.download().unwrap()
        };
        assert!(product(tuned) == product(Gemm::new().plan(other)));
        assert!(product(tuned) != product(Gemm::new()), "a split product adds in another order");
    }
}
