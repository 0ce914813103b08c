//! The shapes of products with quantized weights in tables of measured plans.

use super::format::Format;
use super::plan::QuantPlan;
use crate::tuned::{self, TunableShape, TunedPlans};
use std::fmt;
use std::sync::LazyLock;

/// Extents and format of a product Y ← X·Wᵀ with quantized weights.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct WeightedShape {
    /// Rows of X and Y. A single row consists of floats, which the product's kernel quantizes.
    pub m: usize,
    /// Rows of W, columns of Y.
    pub n: usize,
    /// Columns of X and W.
    pub k: usize,
    /// The format of W.
    pub format: Format,
}

/// Extents are those such as `1x4096x4096`, M × N × K. The variant is the name of the format.
impl TunableShape for WeightedShape {
    type Plan = QuantPlan;

    const HEADER: &'static str = "\
# The fastest plans of products with quantized weights by device and shape, with their evidence.
# `kernels tune weights --case 'MxNxK, FORMAT' --device cuda:0 --write FILE` adds lines.
# device | M x N x K | format | plan | evidence
";
    const USUAL_VARIANT: &'static str = "";

    fn parse(extents: &str, format: &str) -> Result<WeightedShape, String> {
        let Some(&[m, n, k]) = tuned::extents(extents).as_deref() else {
            return Err(format!("`{extents}` are not extents; write MxNxK, such as 1x4096x4096"));
        };
        let Some(format) = Format::ALL.into_iter().find(|known| known.name().eq_ignore_ascii_case(format)) else {
            let known = Format::ALL.map(Format::name).join(", ");
            return Err(match format {
                "" => format!(
                    "no format; write one after the extents, such as `{extents}, Q4_K`; the formats are {known}"
                ),
                _ => format!("there is no format `{format}`; the formats are {known}"),
            });
        };
        let [numbers, _] = format.block();
        if !k.is_multiple_of(numbers) {
            return Err(format!("a block of {} has {numbers} numbers, and {k} is not a multiple", format.name()));
        }
        Ok(WeightedShape { m, n, k, format })
    }

    fn variant(self) -> &'static str {
        self.format.name()
    }

    fn unsuitable(self, plan: QuantPlan) -> Option<String> {
        plan.unsuitable(self.m).map(str::to_string)
    }

    fn built_in() -> &'static TunedPlans<WeightedShape> {
        static BUILT_IN: LazyLock<TunedPlans<WeightedShape>> = LazyLock::new(|| {
            // A test reads the file, so that the library never has a damaged one.
            TunedPlans::parse(include_str!("tuned.txt")).unwrap_or_default()
        });
        &BUILT_IN
    }
}

/// Formats the extents, without the format.
impl fmt::Display for WeightedShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WeightedShape { m, n, k, .. } = self;
        write!(f, "{m}x{n}x{k}")
    }
}

#[cfg(test)]
mod tests {
    use super::super::Weights;
    use super::super::plan::GemvBlock;
    use super::*;
    use crate::tuned::TunedPlan;
    use runtime::Device;

    #[test]
    fn the_built_in_table_is_whole() {
        let text = include_str!("tuned.txt");
        let plans: TunedPlans<WeightedShape> = TunedPlans::parse(text).unwrap();
        assert_eq!(plans.to_string(), text);
        assert_eq!(&plans, WeightedShape::built_in());
    }

    #[test]
    fn damaged_lines_name_the_reason() {
        for (line, why) in [
            ("H200 | 1x2x256 | Q4_9 | few 4 256 2048 1", "there is no format `Q4_9`"),
            ("H200 | 1x2x256 |  | few 4 256 2048 1", "no format; write one after the extents"),
            ("H200 | 1x2 | Q4_K | few 4 256 2048 1", "write MxNxK"),
            ("H200 | 1x2x100 | Q4_K | few 4 256 2048 1", "a block of Q4_K has 256 numbers"),
            ("H200 | 3x2x256 | Q4_K | tiles 16x128 1", "tiles take more than 8 rows"),
            ("H200 | 1x2x256 | Q4_K | few 40 256 2048 1", "from 1 to 32 sums"),
        ] {
            let error = TunedPlans::<WeightedShape>::parse(line).unwrap_err();
            assert!(error.why.contains(why), "{line}: {error}");
        }
    }

    /// Multiplies by the plans of a table. A block of other constants gives the same bits.
    #[test]
    fn a_table_decides_the_plan() {
        let device = Device::cpu();
        let [n, k] = [9, 1280];
        let numbers = |n: usize| (0..n).map(|i| ((i * 7919) % 1000) as f32 / 499.5 - 1.0).collect::<Vec<_>>();
        let file = device.upload(&Format::Q4K.quantize(&numbers(n * k)).unwrap()).unwrap();
        let weights = || Weights::from_blocks(&device, Format::Q4K, &file.view([n, k / 256 * 144]).unwrap()).unwrap();
        let other = GemvBlock { columns: 1, threads: 128, piece: 1024, ahead: 1 };
        let mut plans = TunedPlans::default();
        for m in [1, 3] {
            let shape = WeightedShape { m, n, k, format: Format::Q4K };
            let tuned = TunedPlan { plan: QuantPlan::Few(other), evidence: String::new() };
            plans.insert("CPU", shape, tuned).unwrap();
        }
        let plans: &'static TunedPlans<WeightedShape> = Box::leak(Box::new(plans));
        let (usual, tuned) = (weights(), weights().tuned(plans));
        for (m, is_listed) in [(1, true), (2, false), (3, true)] {
            assert_eq!(tuned.plan(&device, m) == QuantPlan::Few(other), is_listed);
            assert_ne!(usual.plan(&device, m), QuantPlan::Few(other));
            let x = device.upload(&numbers(m * k)).unwrap();
            let product = |weights: &Weights| {
                let mut y = device.zeros::<f32>(m * n).unwrap();
                weights.product(&device, &x.view([m, k]).unwrap(), &mut y.view_mut([m, n]).unwrap()).unwrap();
                y.download().unwrap()
            };
            assert_eq!(product(&tuned), product(&usual), "{m} rows");
        }
    }
}
