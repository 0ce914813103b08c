//! Tests of tuning on the CPU, with planted times.

use super::gemm::ProductOperands;
use super::search::CandidateMeter;
use super::weights::WeightedOperands;
use super::*;
use kernels_rs::gemm::Gemm;
use kernels_rs::gemm::plan::{GemmPlan, GemmTile};
use kernels_rs::quant::Format;
use kernels_rs::quant::plan::QuantPlan;
use kernels_rs::tuned::TunableShape;
use runtime::testing::Random;

use kernel_dsl::compiler::launch::DeviceFacts;

/// A meter that runs and checks the plans on the interpreter. The times are planted.
struct PlantedTimes<'a> {
    device: &'a Device,
    operands: &'a ProductOperands,
    plans: Vec<GemmPlan>,
    fastest: GemmPlan,
    /// A plan whose result is damaged before the check.
    faulty: Option<GemmPlan>,
    random: Random,
}

impl CandidateMeter for PlantedTimes<'_> {
    fn rejected(&mut self, candidate: usize) -> Result<Option<String>, Error> {
        let plan = self.plans[candidate];
        self.operands.overwrite_result(self.device).map_err(Error::Device)?;
        self.operands.run(self.device, plan).map_err(Error::Device)?;
        let mut result = self.operands.result().map_err(Error::Device)?;
        if self.faulty == Some(plan) {
            result[7] *= 1.001;
        }
        Ok(self.operands.reference().mismatch(&result))
    }

    fn time(&mut self, candidate: usize) -> Result<f64, Error> {
        let noise = self.random.below(1001) as f64 * 1e-5;
        Ok(noise + if self.plans[candidate] == self.fastest { 0.8 } else { 1.0 + candidate as f64 * 0.01 })
    }

    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }

    fn progress(&mut self, _: &str, _: usize, _: f64) {}
}

/// Tunes a product on the CPU, writes the table, reads the table, and sees that dispatch picks the
/// planted plan. A plan with a wrong result is never chosen.
#[test]
fn dispatch_picks_the_tuned_plan() {
    let device = Device::cpu_with_facts(DeviceFacts { multiprocessors: 4 });
    let shape = ProductShape::parse("20x24x200", "A·B").unwrap();
    let candidates = PlanCandidates::new(&device, "CPU", shape, ProductShape::built_in()).unwrap();
    let plans: Vec<GemmPlan> = candidates.all.iter().map(|c| c.plan).collect();
    let operands = shape.operands(&device, OperandValues::Drawn).unwrap();
    let budget = Duration::from_secs(60);
    let limits = SearchLimits { candidates: plans.len(), quick: 40, confirming: 100, budget, least_change: 0.01 };
    let tune = |fastest: GemmPlan, faulty: Option<GemmPlan>| {
        let random = Random::new(1);
        let mut meter =
            PlantedTimes { device: &device, operands: &operands, plans: plans.clone(), fastest, faulty, random };
        let result = search(&mut meter, &candidates.accepted(), &candidates.space(), 0, &limits).unwrap();
        TuneReport::new(device.name(), shape, &candidates, &result)
    };
    let planted = plans[5];
    assert_eq!(plans.iter().filter(|plan| **plan == planted).count(), 1);
    let report = tune(planted, None);
    assert_eq!(report.winner, planted.to_string());
    assert!(report.evidence.starts_with("faster: 0.8") && report.evidence.contains("Hedges' g"), "{}", report.evidence);
    let mut table = TunedPlans::default();
    table.insert(device.name(), shape, TunedPlan { plan: planted, evidence: report.evidence }).unwrap();
    let read: &'static TunedPlans<ProductShape> = Box::leak(Box::new(TunedPlans::parse(&table.to_string()).unwrap()));
    let [usual, tuned] = [Gemm::new(), Gemm::new().tuned(read)].map(|call| call.chosen(&device, 1, [20, 24, 200]));
    assert_eq!(tuned, planted);
    assert_ne!(usual, planted);

    let report = tune(planted, Some(planted));
    assert_ne!(report.winner, planted.to_string());
    assert!(matches!(&report.candidates[5].result, CandidateResult::Rejected { why } if why.contains("(0, 7)")));
}

#[test]
fn references_accept_rounding_and_refute_mistakes() {
    let device = Device::cpu();
    for text in ["2x5x6x70, Aᵀ·Bᵀ", "3x4x1, A·Bᵀ", "1x9x33"] {
        let shape: ProductShape = shape_of(text).unwrap();
        let operands = shape.operands(&device, OperandValues::Drawn).unwrap();
        judged(&device, &operands, GemmPlan::Tiles(GemmTile::T16x128, 1));
    }
}

/// Runs a plan, and sees that the reference accepts its result and refutes damaged ones.
fn judged<O: CallOperands>(device: &Device, operands: &O, plan: O::Plan) {
    operands.overwrite_result(device).unwrap();
    operands.run(device, plan).unwrap();
    let reference = operands.reference();
    let mut result = operands.result().unwrap();
    assert_eq!(reference.mismatch(&result), None);
    result[0] += 1.0;
    assert!(reference.mismatch(&result).unwrap().starts_with("element (0, 0) is "));
    result[0] = f32::NAN;
    assert!(reference.mismatch(&result).is_some());
    assert!(reference.mismatch(&result[1..]).is_some());
}

/// Checks plans of weights in every format, with copies of the weights that products read
/// alternately.
#[test]
fn products_with_weights_are_checked() {
    let device = Device::cpu();
    for format in Format::ALL {
        for (m, plans) in [(1, ["few 2 128 1024 1", "few 4 256 2048 2"]), (11, ["few 3 256 2048 1", "tiles 16x128 2"])]
        {
            let shape: WeightedShape = shape_of(&format!("{m}x3x1280, {}", format.name())).unwrap();
            let operands = WeightedOperands::new(&device, shape, OperandValues::Drawn, 2).unwrap();
            for plan in plans {
                judged(&device, &operands, plan.parse::<QuantPlan>().unwrap());
            }
        }
    }
}

/// Checks teams that keep whole rows, and teams that read a part again.
#[test]
fn rows_are_checked() {
    let device = Device::cpu();
    for case in ["3x300, softmax", "5x301, rms norm", "2x2049, layer norm"] {
        let shape: RowsShape = shape_of(case).unwrap();
        let operands = shape.operands(&device, OperandValues::Drawn).unwrap();
        for team in ["team 32 4", "team 64 8", "team 160 12", "team 1024 48"] {
            judged(&device, &operands, team.parse().unwrap());
        }
    }
}

#[test]
fn damaged_tables_are_errors_with_line_and_reason() {
    let folder = std::env::temp_dir().join(format!("kernels-tune-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("table.txt");
    assert_eq!(read_table::<ProductShape>(&path).unwrap(), TunedPlans::default(), "a missing table is empty");
    fs::write(&path, "# a comment\nH200 | 1x2x3 | A·B | tiles 1x1 1 |\n").unwrap();
    let error = read_table::<ProductShape>(&path).unwrap_err().to_string();
    assert!(error.contains("line 2") && error.contains("there is no tile `1x1`"), "{error}");
    fs::write(&path, [0xff, 0xfe]).unwrap();
    assert!(read_table::<ProductShape>(&path).unwrap_err().to_string().contains("not text in UTF-8"));
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn cases_are_extents_and_a_layout() {
    let shape: ProductShape = shape_of("512x6144x2048, A·Bᵀ").unwrap();
    assert_eq!((shape.to_string().as_str(), shape.variant()), ("1x512x6144x2048", "A·Bᵀ"));
    let refused = |case: &str| shape_of::<ProductShape>(case).unwrap_err().to_string();
    assert!(refused("512x6144").contains("write MxNxK"));
    assert!(refused("5x0x7").contains("nothing to tune"));
    assert!(refused("5x6x7, B").contains("the layouts are A·B"));
    let shape: WeightedShape = shape_of("1x4096x2048, q4_k").unwrap();
    assert_eq!((shape.to_string().as_str(), shape.variant()), ("1x4096x2048", "Q4_K"));
    assert!(shape_of::<WeightedShape>("1x4096x2048").unwrap_err().to_string().contains("such as `1x4096x2048, Q4_K`"));
}
