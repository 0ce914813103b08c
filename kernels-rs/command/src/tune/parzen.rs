//! The choice of the next candidate of a large space, by a tree-structured Parzen estimator
//! (Bergstra and others, *Algorithms for Hyper-Parameter Optimization*, 2011).
//!
//! The words of a plan are its parameters: `few 2 256 4096 2` has four numbers, and the tree's
//! first level is the word `few`. The evaluated candidates are divided into the best quarter and
//! the others. Each part gives a density of the parameters. The next candidate has the largest
//! ratio of the density of the best quarter to that of the others.

/// Share of the evaluated candidates that count as good.
const GOOD_SHARE: f64 = 0.25;
/// Share of the candidates that are evaluated in their own order, before the estimator chooses.
const FIRST_SHARE: f64 = 0.3;

/// The parameters of all candidates.
pub(super) struct ParameterSpace {
    trees: Vec<ParameterTree>,
    candidates: Vec<CandidatePoint>,
}

/// The plans whose texts have one first word and as many words.
struct ParameterTree {
    root: String,
    /// The number of candidates.
    size: usize,
    /// The values of each parameter.
    values: Vec<Vec<String>>,
}

/// The tree of a candidate, and the number of the value of each parameter.
struct CandidatePoint {
    tree: usize,
    values: Vec<usize>,
}

/// An evaluated candidate.
#[derive(Clone, Copy, Debug)]
struct EvaluatedCandidate {
    number: usize,
    /// Time; infinite if the candidate was rejected.
    time: f64,
}

/// The density of a tree, and of each value of its parameters.
struct TreeDensity {
    root: f64,
    values: Vec<Vec<f64>>,
}

impl ParameterSpace {
    /// Reads the parameters of plans from their texts.
    pub fn new(plans: impl IntoIterator<Item = String>) -> ParameterSpace {
        let mut space = ParameterSpace { trees: Vec::new(), candidates: Vec::new() };
        for plan in plans {
            let mut words = plan.split_whitespace().map(str::to_string);
            let (root, words) = (words.next().unwrap_or_default(), words.collect::<Vec<_>>());
            let is_tree = |tree: &ParameterTree| tree.root == root && tree.values.len() == words.len();
            let tree = space.trees.iter().position(is_tree).unwrap_or_else(|| {
                space.trees.push(ParameterTree { root, size: 0, values: vec![Vec::new(); words.len()] });
                space.trees.len() - 1
            });
            space.trees[tree].size += 1;
            let number = |(word, values): (String, &mut Vec<String>)| {
                values.iter().position(|value| *value == word).unwrap_or_else(|| {
                    values.push(word);
                    values.len() - 1
                })
            };
            let values = words.into_iter().zip(&mut space.trees[tree].values).map(number).collect();
            space.candidates.push(CandidatePoint { tree, values });
        }
        space
    }

    /// Evaluates up to `count` of the candidates, which are given in the order of their likely
    /// times. `evaluate` returns a time, infinite for a rejected candidate, or `None` if the budget
    /// is spent. Returns whether the budget was spent.
    ///
    /// # Errors
    /// Returns the first error of `evaluate`.
    pub fn explore<E>(
        &self,
        candidates: &[usize],
        count: usize,
        mut evaluate: impl FnMut(usize) -> Result<Option<f64>, E>,
    ) -> Result<bool, E> {
        let (mut evaluated, mut remaining): (Vec<EvaluatedCandidate>, Vec<usize>) = (Vec::new(), candidates.to_vec());
        let in_order = if candidates.len() <= count { count } else { (FIRST_SHARE * count as f64).ceil() as usize };
        while evaluated.len() < count && !remaining.is_empty() {
            let at = if evaluated.len() < in_order { 0 } else { self.next(&evaluated, &remaining) };
            let number = remaining.remove(at);
            let Some(time) = evaluate(number)? else { return Ok(true) };
            evaluated.push(EvaluatedCandidate { number, time });
        }
        Ok(false)
    }

    /// Returns the position of the next candidate in `remaining`; of equally good ones the first.
    fn next(&self, evaluated: &[EvaluatedCandidate], remaining: &[usize]) -> usize {
        let mut sorted = evaluated.to_vec();
        sorted.sort_by(|a, b| a.time.total_cmp(&b.time));
        let (good, others) = sorted.split_at((GOOD_SHARE * sorted.len() as f64).ceil() as usize);
        let (good, others) = (self.densities(good), self.densities(others));
        let mut best = (0, f64::NEG_INFINITY);
        for (at, number) in remaining.iter().enumerate() {
            let point = &self.candidates[*number];
            let score = point.log_density(&good) - point.log_density(&others);
            if score > best.1 {
                best = (at, score);
            }
        }
        best.0
    }

    /// Returns the densities of the evaluated candidates. Candidates of another tree do not count
    /// for the parameters of a tree. A uniform density of weight 1 keeps values without a candidate
    /// possible.
    fn densities(&self, evaluated: &[EvaluatedCandidate]) -> Vec<TreeDensity> {
        let of_tree = |(number, tree): (usize, &ParameterTree)| {
            let points = evaluated.iter().map(|evaluated| &self.candidates[evaluated.number]);
            let points: Vec<&CandidatePoint> = points.filter(|point| point.tree == number).collect();
            let of_parameter = |(at, values): (usize, &Vec<String>)| {
                let mut density = vec![1.0 / values.len() as f64; values.len()];
                for point in &points {
                    let center = &values[point.values[at]];
                    let kernel: Vec<f64> = values.iter().map(|value| similarity(value, center)).collect();
                    let sum: f64 = kernel.iter().sum();
                    density.iter_mut().zip(kernel).for_each(|(density, weight)| *density += weight / sum);
                }
                density.iter().map(|density| density / (points.len() + 1) as f64).collect()
            };
            let share = tree.size as f64 / self.candidates.len() as f64;
            TreeDensity {
                root: (share + points.len() as f64) / (evaluated.len() + 1) as f64,
                values: tree.values.iter().enumerate().map(of_parameter).collect(),
            }
        };
        self.trees.iter().enumerate().map(of_tree).collect()
    }
}

impl CandidatePoint {
    /// Returns the logarithm of the density at this candidate.
    fn log_density(&self, densities: &[TreeDensity]) -> f64 {
        let TreeDensity { root, values } = &densities[self.tree];
        let of_values = values.iter().zip(&self.values).map(|(density, value)| density[*value].ln());
        root.ln() + of_values.sum::<f64>()
    }
}

/// Returns the similarity of two values of a parameter: a Gaussian of the logarithms of numbers,
/// with a standard deviation of a factor of 2; 0 for different words.
fn similarity(a: &str, b: &str) -> f64 {
    match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(a), Ok(b)) => (-0.5 * (a.max(0.5) / b.max(0.5)).log2().powi(2)).exp(),
        _ if a == b => 1.0,
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns 640 plans in an order that says nothing of their times.
    fn plans() -> Vec<String> {
        let mut all = Vec::new();
        for columns in [1, 2, 3, 4, 6, 8] {
            for threads in [32, 64, 128, 256, 512] {
                for piece in [1024, 2048, 4096, 8192] {
                    for ahead in [1, 2, 4, 8, 16] {
                        all.push(format!("few {columns} {threads} {piece} {ahead}"));
                    }
                }
            }
        }
        all.extend((1..=40).map(|parts| format!("tiles 64x128 {parts}")));
        // 267 has no divisor in common with 640, so that the steps visit each plan once.
        (0..all.len()).map(|i| all[i * 267 % all.len()].clone()).collect()
    }

    /// Returns a time that is least for `few 6 128 4096 4`.
    fn planted_time(plan: &str) -> f64 {
        let words: Vec<&str> = plan.split_whitespace().collect();
        let distance = |at: usize, best: f64| (words[at].parse::<f64>().unwrap() / best).log2().abs();
        match words[0] {
            "few" => {
                1.0 + 0.2 * distance(1, 6.0)
                    + 0.1 * distance(2, 128.0)
                    + 0.1 * distance(3, 4096.0)
                    + 0.1 * distance(4, 4.0)
            }
            _ => 3.0,
        }
    }

    /// Evaluates candidates, and returns the least time and the number of evaluations.
    fn explored(plans: &[String], count: usize) -> (f64, Vec<usize>) {
        let (space, mut evaluations, mut best) = (ParameterSpace::new(plans.to_vec()), Vec::new(), f64::INFINITY);
        let candidates: Vec<usize> = (0..plans.len()).collect();
        let spent = space.explore(&candidates, count, |number| {
            evaluations.push(number);
            best = best.min(planted_time(&plans[number]));
            Ok::<_, ()>(Some(planted_time(&plans[number])))
        });
        assert_eq!(spent, Ok(false));
        (best, evaluations)
    }

    #[test]
    fn a_planted_optimum_of_a_large_space_is_found() {
        let plans = plans();
        let (best, evaluations) = explored(&plans, 60);
        assert_eq!(evaluations.len(), 60);
        let in_order = plans[..60].iter().map(|plan| planted_time(plan)).fold(f64::INFINITY, f64::min);
        assert!(best < in_order, "{best} {in_order}");
        assert!(best <= 1.1, "at most one step from the optimum: {best}");
        let mut distinct = evaluations.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), evaluations.len(), "no candidate is evaluated twice");
    }

    #[test]
    fn a_small_space_is_evaluated_in_its_order() {
        let plans = &plans()[..20];
        let (_, evaluations) = explored(plans, 24);
        assert_eq!(evaluations, (0..20).collect::<Vec<_>>());
    }

    #[test]
    fn rejected_candidates_repel_and_the_budget_ends_the_search() {
        let plans = plans();
        let (space, candidates) = (ParameterSpace::new(plans.clone()), (0..plans.len()).collect::<Vec<_>>());
        let mut evaluations = Vec::new();
        let spent = space.explore(&candidates, 100, |number| {
            evaluations.push(number);
            let is_rejected = plans[number].contains(" 512 ");
            let time = if is_rejected { f64::INFINITY } else { planted_time(&plans[number]) };
            Ok::<_, ()>((evaluations.len() <= 50).then_some(time))
        });
        assert_eq!((spent, evaluations.len()), (Ok(true), 51));
        let rejected = |some: &[usize]| some.iter().filter(|number| plans[**number].contains(" 512 ")).count();
        assert!(rejected(&evaluations[31..51]) <= 2, "{}", rejected(&evaluations[31..51]));
    }
}
