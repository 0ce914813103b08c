//! Tests of tuning on the CPU, with planted times.

use super::search::CandidateMeter;
use super::*;
use kernels_rs::gemm::plan::GemmTile;
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
        self.operands.run(self.device, Gemm::new().plan(plan)).map_err(Error::Device)?;
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
    let candidates = ProductCandidates::new(&device, Gemm::new(), shape, 8);
    let plans: Vec<GemmPlan> = candidates.all.iter().map(|c| c.plan).collect();
    let operands = ProductOperands::drawn(&device, shape).unwrap();
    let limits = SearchLimits { quick: 40, confirming: 100, budget: Duration::from_secs(60), least_change: 0.01 };
    let tune = |fastest: GemmPlan, faulty: Option<GemmPlan>| {
        let random = Random::new(1);
        let mut meter =
            PlantedTimes { device: &device, operands: &operands, plans: plans.clone(), fastest, faulty, random };
        let result = search(&mut meter, &candidates.accepted(), 0, &limits).unwrap();
        TuneReport::new(device.name(), shape, &candidates, &result)
    };
    let planted = plans[5];
    assert_eq!(plans.iter().filter(|plan| **plan == planted).count(), 1);
    let report = tune(planted, None);
    assert_eq!(report.winner, planted.to_string());
    assert!(report.evidence.starts_with("faster: 0.8") && report.evidence.contains("Hedges' g"), "{}", report.evidence);
    let mut table = TunedPlans::default();
    table.insert(device.name(), shape, TunedPlan { plan: planted, evidence: report.evidence }).unwrap();
    let read: &'static TunedPlans = Box::leak(Box::new(TunedPlans::parse(&table.to_string()).unwrap()));
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
        let shape = case_arg(text).unwrap();
        let operands = ProductOperands::drawn(&device, shape).unwrap();
        let ProductShape { transpose_a, transpose_b, .. } = shape;
        let call = if transpose_a { Gemm::new().transpose_a() } else { Gemm::new() };
        let call = if transpose_b { call.transpose_b() } else { call };
        operands.run(&device, call.plan(GemmPlan::Tiles(GemmTile::T16x128, 1))).unwrap();
        let reference = operands.reference();
        let mut result = operands.result().unwrap();
        assert_eq!(reference.mismatch(&result), None);
        result[0] += 0.01;
        assert!(reference.mismatch(&result).unwrap().starts_with("element (0, 0) is "));
        result[0] = f32::NAN;
        assert!(reference.mismatch(&result).is_some());
        assert!(reference.mismatch(&result[1..]).is_some());
    }
}

#[test]
fn damaged_tables_are_errors_with_line_and_reason() {
    let folder = std::env::temp_dir().join(format!("kernels-tune-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("table.txt");
    assert_eq!(read_table(&path).unwrap(), TunedPlans::default(), "a missing table is empty");
    fs::write(&path, "# a comment\nH200 | 1x2x3 | A·B | tiles 1x1 1 |\n").unwrap();
    let error = read_table(&path).unwrap_err().to_string();
    assert!(error.contains("line 2") && error.contains("there is no tile `1x1`"), "{error}");
    fs::write(&path, [0xff, 0xfe]).unwrap();
    assert!(read_table(&path).unwrap_err().to_string().contains("not text in UTF-8"));
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn cases_are_extents_and_a_layout() {
    let shape = case_arg("512x6144x2048, A·Bᵀ").unwrap();
    assert_eq!((shape.to_string().as_str(), shape.layout()), ("1x512x6144x2048", "A·Bᵀ"));
    assert!(case_arg("512x6144").unwrap_err().contains("write MxNxK"));
    assert!(case_arg("5x6x7, B").unwrap_err().contains("the layouts are A·B"));
}
