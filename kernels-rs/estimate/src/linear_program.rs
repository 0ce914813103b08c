//! Linear programs: non-negative variables that fulfill equations at the least cost.
//!
//! The solver is the simplex method on a dense tableau (Dantzig, "Linear Programming and
//! Extensions", 1963). Costs have three levels. A level decides among the solutions that are best
//! by the levels before it. Small random additions to the right-hand sides keep the method from
//! cycles (Charnes, "Optimality and Degeneracy in Linear Programming", 1952). The result is free of
//! these additions.

/// Levels of costs. An infeasibility precedes the three levels of the caller.
const LEVELS: usize = 4;
/// Number below which a cost or an element of the tableau counts as zero.
const ZERO: f64 = 1e-9;
/// Size of the additions to right-hand sides.
const ADDITION: f64 = 1e-6;
/// Limit of the elements that all steps together read or change: some seconds.
const MAX_WORK: usize = 1 << 32;

/// A linear program.
pub(crate) struct LinearProgram {
    /// Costs of a unit of each variable, by level.
    costs: Vec<[f64; LEVELS]>,
    rows: Vec<Equation>,
}

/// An equation: the products of coefficients and variables sum to `right`.
struct Equation {
    coefficients: Vec<(usize, f64)>,
    right: f64,
    /// Variable of the first solution: one that has the coefficient 1 here and is in no other
    /// equation. `None` is an artificial variable, which measures the infeasibility.
    basic: Option<usize>,
}

/// State of the simplex method.
struct Tableau {
    /// Rows of the equations, solved for the basic variables.
    rows: Vec<Vec<f64>>,
    /// Right-hand sides with the additions, and without.
    right: Vec<[f64; 2]>,
    basic: Vec<Option<usize>>,
    /// Reduced costs of the variables, by level.
    reduced: [Vec<f64>; LEVELS],
}

impl LinearProgram {
    pub(crate) fn new() -> LinearProgram {
        LinearProgram { costs: Vec::new(), rows: Vec::new() }
    }

    /// Adds a variable with the costs of a unit, by level, and returns its number.
    pub(crate) fn variable(&mut self, costs: [f64; 3]) -> usize {
        self.costs.push([0.0, costs[0], costs[1], costs[2]]);
        self.costs.len() - 1
    }

    /// Adds an equation with a right-hand side of at least 0.
    pub(crate) fn equation(&mut self, coefficients: Vec<(usize, f64)>, right: f64) {
        self.rows.push(Equation { coefficients, right, basic: None });
    }

    /// Adds an equation with a right-hand side of at least 0, from which the sum of the products
    /// may deviate. A unit that the sum lacks costs `less`, and an excess costs `more`.
    pub(crate) fn soft_equation(&mut self, mut coefficients: Vec<(usize, f64)>, right: f64, [less, more]: [f64; 2]) {
        let lacking = self.variable([less, 0.0, 0.0]);
        let excess = self.variable([more, 0.0, 0.0]);
        coefficients.extend([(lacking, 1.0), (excess, -1.0)]);
        self.rows.push(Equation { coefficients, right, basic: Some(lacking) });
    }

    /// Returns the values of the variables. The values fulfill the equations as far as possible.
    pub(crate) fn solve(&self) -> Vec<f64> {
        let mut tableau = Tableau::new(self);
        // Each step reads the costs and a column. Few rows have an element in that column, so that
        // most of the tableau stays as it is.
        let scanned = LEVELS * self.costs.len() + tableau.rows.len();
        let mut work = 0;
        while work < MAX_WORK {
            let Some((row, column)) = tableau.step() else { break };
            work += scanned + tableau.exchange(row, column);
        }
        let mut values = vec![0.0; self.costs.len()];
        for (basic, right) in tableau.basic.iter().zip(&tableau.right) {
            if let Some(variable) = basic {
                values[*variable] = right[1].max(0.0);
            }
        }
        values
    }
}

impl Tableau {
    fn new(program: &LinearProgram) -> Tableau {
        let count = program.costs.len();
        let mut reduced: [Vec<f64>; LEVELS] =
            std::array::from_fn(|level| program.costs.iter().map(|costs| costs[level]).collect());
        let (mut rows, mut right) = (Vec::new(), Vec::new());
        for (number, equation) in program.rows.iter().enumerate() {
            let mut row = vec![0.0; count];
            equation.coefficients.iter().for_each(|(variable, factor)| row[*variable] += factor);
            let costs = equation.basic.map_or([1.0, 0.0, 0.0, 0.0], |variable| program.costs[variable]);
            for (reduced, cost) in reduced.iter_mut().zip(costs).filter(|(_, cost)| *cost != 0.0) {
                reduced.iter_mut().zip(&row).for_each(|(reduced, factor)| *reduced -= cost * factor);
            }
            rows.push(row);
            // The fractional parts of multiples of the golden ratio look random.
            let addition = ADDITION * (0.5 + (number as f64 * 0.618_033_988_75).fract());
            right.push([equation.right + addition, equation.right]);
        }
        Tableau { rows, right, basic: program.rows.iter().map(|equation| equation.basic).collect(), reduced }
    }

    /// Returns the row and the column of the next exchange; `None` at the optimum.
    fn step(&self) -> Option<(usize, usize)> {
        // A variable enters if the first level that it changes falls.
        let falls = |column: &usize, level: usize| {
            self.reduced[level][*column] < -ZERO && (0..level).all(|above| self.reduced[above][*column] < ZERO)
        };
        let entering = |level: usize| {
            let columns = (0..self.reduced[level].len()).filter(|column| falls(column, level));
            columns.min_by(|a, b| self.reduced[level][*a].total_cmp(&self.reduced[level][*b]))
        };
        let column = (0..LEVELS).find_map(entering)?;
        let limits = (0..self.rows.len()).filter(|row| self.rows[*row][column] > ZERO);
        let limit = |row: usize| self.right[row][0] / self.rows[row][column];
        let row = limits.min_by(|a, b| limit(*a).total_cmp(&limit(*b)))?;
        Some((row, column))
    }

    /// Makes the variable of `column` basic in `row`. Returns the number of changed elements.
    fn exchange(&mut self, row: usize, column: usize) -> usize {
        let pivot = self.rows[row][column];
        self.rows[row].iter_mut().for_each(|element| *element /= pivot);
        self.right[row].iter_mut().for_each(|element| *element /= pivot);
        let (own, own_right) = (std::mem::take(&mut self.rows[row]), self.right[row]);
        let used: Vec<usize> = (0..own.len()).filter(|at| own[*at] != 0.0).collect();
        let mut changed = own.len();
        let mut subtract = |elements: &mut Vec<f64>| {
            let factor = elements[column];
            if factor != 0.0 {
                used.iter().for_each(|at| elements[*at] -= factor * own[*at]);
                elements[column] = 0.0;
                changed += used.len();
            }
            factor
        };
        for (elements, right) in self.rows.iter_mut().zip(&mut self.right).filter(|(elements, _)| !elements.is_empty())
        {
            let factor = subtract(elements);
            right.iter_mut().zip(own_right).for_each(|(right, own)| *right -= factor * own);
        }
        for reduced in &mut self.reduced {
            subtract(reduced);
        }
        self.rows[row] = own;
        self.basic[row] = Some(column);
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the best mixture with the one found by hand.
    #[test]
    fn the_cheapest_solution_is_found() {
        // 3 x + 5 y is largest with x ≤ 4, 2 y ≤ 12 and 3 x + 2 y ≤ 18: x = 2 and y = 6.
        let mut program = LinearProgram::new();
        let (x, y) = (program.variable([-3.0, 0.0, 0.0]), program.variable([-5.0, 0.0, 0.0]));
        let slack: Vec<usize> = (0..3).map(|_| program.variable([0.0; 3])).collect();
        program.equation(vec![(x, 1.0), (slack[0], 1.0)], 4.0);
        program.equation(vec![(y, 2.0), (slack[1], 1.0)], 12.0);
        program.equation(vec![(x, 3.0), (y, 2.0), (slack[2], 1.0)], 18.0);
        assert_eq!(program.solve()[..2], [2.0, 6.0]);
    }

    #[test]
    fn the_second_level_decides_among_equal_solutions() {
        for (costs, expected) in [([1.0, 2.0], [7.0, 0.0]), ([2.0, 1.0], [0.0, 7.0])] {
            let mut program = LinearProgram::new();
            let variables = costs.map(|cost| program.variable([1.0, cost, 0.0]));
            program.equation(variables.map(|variable| (variable, 1.0)).to_vec(), 7.0);
            assert_eq!(program.solve()[..], expected);
        }
    }

    /// Solves the flow through a chain of 700 branches, whose sums are known. The program has as
    /// many equations as a kernel of 2100 basic blocks.
    #[test]
    fn a_large_flow_is_solved_to_the_end() {
        let mut program = LinearProgram::new();
        let branches = 700;
        let mut entering = program.variable([0.0, 0.0, 1.0]);
        program.equation(vec![(entering, 1.0)], 1.0);
        let mut taken = Vec::new();
        for number in 0..branches {
            let [left, right, next] = [1.0, 3.0, 1.0].map(|size| program.variable([0.0, 0.0, size]));
            program.equation(vec![(entering, 1.0), (left, -1.0), (right, -1.0)], 0.0);
            program.equation(vec![(left, 1.0), (right, 1.0), (next, -1.0)], 0.0);
            let share = f64::from(number % 8) / 8.0;
            program.soft_equation(vec![(left, 1.0)], share, [1.0, 1.0]);
            taken.push((left, share));
            entering = next;
        }
        let values = program.solve();
        assert!(taken.iter().all(|(left, share)| (values[*left] - share).abs() < 1e-9));
        assert!((values[entering] - 1.0).abs() < 1e-9);
    }

    /// Checks that the sum of the deviations is least at the median.
    #[test]
    fn soft_equations_give_the_median() {
        let mut program = LinearProgram::new();
        let x = program.variable([0.0, 0.0, 1.0]);
        for value in [1.0, 5.0, 4.0, 100.0, 0.0] {
            program.soft_equation(vec![(x, 1.0)], value, [1.0, 1.0]);
        }
        assert_eq!(program.solve()[x], 4.0);
    }
}
