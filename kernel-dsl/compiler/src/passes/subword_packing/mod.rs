//! Subword packing: small integers that are loaded, selected and stored together stay in one word.
//!
//! Four integers of 8 bits, or two of 16, are a *pack* where one operation uses them as a word: a
//! [`Bits::Join`], a store, or the masked-lane values of a predicated load. A pack becomes a word
//! under two conditions: all its uses use that pack, and its source can provide the word. Such
//! sources are constants, consecutive results of a load, which then loads words, or results of an
//! `If`, which then yields a word.
//!
//! If a join or store has parts of several words, byte permutations mix its word from them. These
//! words must have no other uses. Otherwise the pack stays as separate integers.

mod mixed;

use self::mixed::{InstructionList, Mixer};
use super::constants::Constants;
use super::rewrite::rewrite;
use crate::error::Errors;
use crate::integer;
use crate::ir::*;
use crate::scalar::Scalar;
use smallvec::SmallVec;
use std::collections::{HashMap, HashSet};

/// The parts of a word, the first lowest.
type WordParts = SmallVec<[Value; 4]>;

/// Turns packs into words.
pub fn subword_packing(kernel: &mut Kernel) -> Result<(), Errors> {
    let mut uses = Uses::new(kernel);
    uses.region(&kernel.body, None);
    let (packs, mixed) = uses.packs();
    if packs.is_empty() {
        return Ok(());
    }
    let choices = packs.iter().filter_map(|pack| {
        let sides = uses.chosen(pack)?;
        // Several parts of the pack may be the same select.
        Some(SelectPack { pack: pack.clone(), sides, left: pack.iter().collect::<HashSet<_>>().len() })
    });
    let choices = choices.collect();
    let constants = uses.constants;
    let mut types = std::mem::take(&mut kernel.values);
    let mut words = HashMap::new();
    for pack in packs {
        let ty = word(&types, &pack).unwrap_or(Scalar::U32);
        types.push(Type::Scalar(ty));
        words.insert(pack[0], (pack, Value(types.len() as u32 - 1)));
    }
    let parts = words
        .values()
        .flat_map(|(pack, word): &(WordParts, Value)| pack.iter().enumerate().map(|(at, v)| (*v, (*word, at))));
    let mixer = Mixer::new(parts.collect(), mixed);
    let mut rewriter = Rewriter { types, constants, words, mixer, choices, replacements: HashMap::new() };
    rewriter.region(&mut kernel.body, &[]);
    kernel.values = rewriter.types;
    rewriter.constants.place(&mut kernel.body);
    Ok(())
}

/// Returns how many integers of type `ty` a word holds, if they are narrower than a word.
fn parts(ty: Type) -> Option<usize> {
    let scalar = ty.scalar().filter(|s| s.is_integer() && s.bits() < 32)?;
    Some((32 / scalar.bits()) as usize)
}

/// Returns the type of a word of the pack.
fn word(types: &[Type], pack: &[Value]) -> Option<Scalar> {
    let first = types[pack[0].0 as usize].scalar()?;
    Some(if first.is_signed() { Scalar::I32 } else { Scalar::U32 })
}

/// Returns the packs of consecutive values; `None` if the values do not fill them completely.
fn packs_of(kernel: &Kernel, values: &[Value]) -> Option<Vec<WordParts>> {
    let n = parts(kernel.ty(*values.first()?))?;
    let whole = values.len().is_multiple_of(n) && (values.len() / n).is_power_of_two();
    whole.then(|| values.chunks(n).map(SmallVec::from_slice).collect())
}

/// The origin of a value: an instruction, by its first result, and the number of the result.
#[derive(Clone, Copy)]
enum PartOrigin {
    Load(Value, usize),
    If(Value, usize),
    /// A select by this condition between two values.
    Select(Value, [Value; 2]),
}

/// A use of a value.
#[derive(Clone, Copy)]
enum PartUse {
    /// A requested pack, by its number.
    Pack(usize),
    /// A result of an `If`: its first result, and the number of the result.
    Yield(Value, usize),
    /// The select with this result.
    Select(Value),
    Other,
}

/// A pack that an operation uses as a word.
struct RequestedPack {
    pack: WordParts,
    /// Packs with equal numbers become words together or not at all.
    together: usize,
    /// Whether byte permutations may mix the word. A word of a load's values for masked lanes
    /// cannot be mixed.
    mixes: bool,
}

struct Uses<'k> {
    kernel: &'k Kernel,
    constants: Constants,
    origins: HashMap<Value, PartOrigin>,
    uses: HashMap<Value, Vec<PartUse>>,
    wanted: Vec<RequestedPack>,
    together: usize,
    /// The results of each load of small integers, and the packs of their values in masked lanes.
    loads: HashMap<Value, (Vec<WordParts>, Vec<WordParts>)>,
    /// The values that the regions of each `If` yield, and its results.
    ifs: HashMap<Value, ([Vec<Value>; 2], Vec<Value>)>,
}

impl<'k> Uses<'k> {
    fn new(kernel: &'k Kernel) -> Uses<'k> {
        Uses {
            kernel,
            constants: Constants::of(kernel),
            origins: HashMap::new(),
            uses: HashMap::new(),
            wanted: Vec::new(),
            together: 0,
            loads: HashMap::new(),
            ifs: HashMap::new(),
        }
    }

    /// Collects the packs of a region. `within` is the first result of the enclosing `If`.
    fn region(&mut self, region: &Region, within: Option<Value>) {
        for inst in &region.insts {
            let first = inst.results.first().copied();
            match &inst.op {
                Op::Bits(Bits::Join, operands) => {
                    self.request(vec![operands.clone()], true);
                    continue;
                }
                // The indices in the place may be small integers too, and their uses count.
                Op::Store { place: AccessPlace::Address { .. }, values, .. } => {
                    if let Some(packs) = packs_of(self.kernel, values) {
                        self.request(packs, true);
                        continue;
                    }
                }
                Op::Load { place: AccessPlace::Address { .. }, guard, .. } => {
                    if let (Some(first), Some(results)) = (first, packs_of(self.kernel, &inst.results)) {
                        for (i, r) in inst.results.iter().enumerate() {
                            self.origins.insert(*r, PartOrigin::Load(first, i));
                        }
                        let others =
                            guard.as_ref().and_then(|g| packs_of(self.kernel, &g.otherwise)).unwrap_or_default();
                        self.request(others.clone(), false);
                        self.loads.insert(first, (results, others));
                        continue;
                    }
                }
                Op::If { then, otherwise, .. } => {
                    if let Some(first) = first {
                        let yields = [then, otherwise].map(|r| r.yielded().map_or_else(Vec::new, |v| v.to_vec()));
                        for (i, r) in inst.results.iter().enumerate() {
                            self.origins.insert(*r, PartOrigin::If(first, i));
                        }
                        self.ifs.insert(first, (yields, inst.results.to_vec()));
                    }
                    self.region(then, first);
                    self.region(otherwise, first);
                    continue;
                }
                Op::Select { condition, yes, no } if parts(self.kernel.ty(*yes)).is_some() => {
                    if let Some(result) = first {
                        self.origins.insert(result, PartOrigin::Select(*condition, [*yes, *no]));
                        for v in [yes, no] {
                            self.uses.entry(*v).or_default().push(PartUse::Select(result));
                        }
                    }
                    continue;
                }
                Op::Yield(values) if within.is_some() => {
                    for (i, v) in values.iter().enumerate().filter(|(_, v)| parts(self.kernel.ty(**v)).is_some()) {
                        self.uses.entry(*v).or_default().extend(within.map(|first| PartUse::Yield(first, i)));
                    }
                    continue;
                }
                _ => {}
            }
            inst.op.for_each_operand(|v| {
                if parts(self.kernel.ty(v)).is_some() {
                    self.uses.entry(v).or_default().push(PartUse::Other);
                }
            });
            inst.op.regions().into_iter().for_each(|r| self.region(r, None));
        }
    }

    /// Requests packs that either all become words or all stay separate integers.
    fn request(&mut self, packs: Vec<WordParts>, mixes: bool) {
        for pack in packs {
            for v in &pack {
                self.uses.entry(*v).or_default().push(PartUse::Pack(self.wanted.len()));
            }
            self.wanted.push(RequestedPack { pack, together: self.together, mixes });
        }
        self.together += 1;
    }

    fn constant(&self, pack: &WordParts) -> bool {
        pack.iter().all(|v| self.constants.bits(*v).is_some())
    }

    /// Returns the packs that the regions of an `If` yield for a pack of its results.
    fn yielded(&self, first: Value, at: usize, n: usize) -> Option<[WordParts; 2]> {
        let ([then, otherwise], _) = self.ifs.get(&first)?;
        Some([SmallVec::from_slice(then.get(at..at + n)?), SmallVec::from_slice(otherwise.get(at..at + n)?)])
    }

    /// Returns the packs that a pack of selects chooses from.
    fn chosen(&self, pack: &WordParts) -> Option<[WordParts; 2]> {
        let side = |k: usize| {
            let of = |v: &Value| match self.origins.get(v) {
                Some(PartOrigin::Select(_, sides)) => Some(sides[k]),
                _ => None,
            };
            pack.iter().map(of).collect::<Option<WordParts>>()
        };
        Some([side(0)?, side(1)?])
    }

    /// Returns the common origin of all parts of a pack, if there is one.
    fn origin(&self, pack: &WordParts) -> Option<PartOrigin> {
        let origin = *self.origins.get(&pack[0])?;
        let follows = |(k, v): (usize, &Value)| match (origin, self.origins.get(v)) {
            (PartOrigin::Load(of, i), Some(PartOrigin::Load(other, j))) => of == *other && i + k == *j,
            (PartOrigin::If(of, i), Some(PartOrigin::If(other, j))) => of == *other && i + k == *j,
            (PartOrigin::Select(by, _), Some(PartOrigin::Select(other, _))) => by == *other,
            _ => false,
        };
        let aligned = !matches!(origin, PartOrigin::Load(_, i) if !i.is_multiple_of(pack.len()));
        (aligned && pack.iter().enumerate().all(follows)).then_some(origin)
    }

    /// Returns the packs of loads that the parts of a pack lie in, if all are loaded.
    fn loaded(&self, pack: &WordParts) -> Option<Vec<&WordParts>> {
        let of = |v: &Value| match self.origins.get(v) {
            Some(PartOrigin::Load(first, i)) => self.loads.get(first)?.0.get(i / pack.len()),
            _ => None,
        };
        pack.iter().map(of).collect()
    }

    /// Returns the packs that become words, and the requested packs that are mixed from parts of
    /// these words.
    fn packs(&self) -> (Vec<WordParts>, Vec<WordParts>) {
        // All candidates: the requested packs, and the packs that they are made of.
        let mut open: Vec<WordParts> = self.wanted.iter().map(|w| w.pack.clone()).collect();
        let mut mixed: HashSet<usize> = HashSet::new();
        for (number, RequestedPack { pack, .. }) in self.wanted.iter().enumerate().filter(|(_, w)| w.mixes) {
            if let (None, Some(of)) = (self.origin(pack), self.loaded(pack)) {
                mixed.insert(number);
                open.extend(of.into_iter().cloned());
            }
        }
        let mut good: HashSet<WordParts> = HashSet::new();
        while let Some(pack) = open.pop() {
            if self.constant(&pack) || good.contains(&pack) {
                continue;
            }
            match self.origin(&pack) {
                Some(PartOrigin::If(first, at)) => {
                    open.extend(self.yielded(first, at, pack.len()).into_iter().flatten())
                }
                Some(PartOrigin::Select(..)) => open.extend(self.chosen(&pack).into_iter().flatten()),
                Some(PartOrigin::Load(..)) => {}
                None => continue,
            }
            good.insert(pack);
        }
        // Then packs that cannot be words are removed, until none is.
        loop {
            let separate_groups: HashSet<usize> = self
                .wanted
                .iter()
                .enumerate()
                .filter(|(number, w)| !self.constant(&w.pack) && !good.contains(&w.pack) && !mixed.contains(number))
                .map(|(_, w)| w.together)
                .collect();
            let pack_of = good.iter().flat_map(|pack| pack.iter().map(move |v| (*v, pack))).collect();
            let as_word = |number: usize, pack: &WordParts| {
                let wanted = &self.wanted[number];
                (wanted.pack == *pack || mixed.contains(&number)) && !separate_groups.contains(&wanted.together)
            };
            let keep: HashSet<WordParts> =
                good.iter().filter(|p| self.can_be_word(p, &good, &pack_of, &as_word)).cloned().collect();
            let before = good.len() + mixed.len();
            good = keep;
            mixed.retain(|number| {
                let of = self.loaded(&self.wanted[*number].pack);
                of.is_some_and(|of| of.into_iter().all(|pack| good.contains(pack)))
            });
            if good.len() + mixed.len() == before {
                break;
            }
        }
        let mut good: Vec<WordParts> = good.into_iter().collect();
        good.sort_by_key(|pack| pack[0]);
        let mut mixed: Vec<usize> = mixed.into_iter().collect();
        mixed.sort_unstable();
        (good, mixed.into_iter().map(|number| self.wanted[number].pack.clone()).collect())
    }

    /// Returns whether a pack can be a word if the packs in `good` are words. `as_word` returns
    /// whether a requested pack, given by its number, uses `pack` or parts of it as a word.
    fn can_be_word(
        &self,
        pack: &WordParts,
        good: &HashSet<WordParts>,
        pack_of: &HashMap<Value, &WordParts>,
        as_word: &impl Fn(usize, &WordParts) -> bool,
    ) -> bool {
        let is_word = |pack: &WordParts| self.constant(pack) || good.contains(pack);
        let comes = match self.origin(pack) {
            Some(PartOrigin::Load(first, _)) => {
                self.loads.get(&first).is_some_and(|(results, others)| results.iter().chain(others).all(is_word))
            }
            Some(PartOrigin::If(first, at)) => {
                self.yielded(first, at, pack.len()).is_some_and(|yields| yields.iter().all(is_word))
            }
            Some(PartOrigin::Select(..)) => self.chosen(pack).is_some_and(|sides| sides.iter().all(is_word)),
            None => false,
        };
        comes
            && pack.iter().enumerate().all(|(k, v)| {
                self.uses.get(v).into_iter().flatten().all(|of| match *of {
                    PartUse::Pack(number) => as_word(number, pack),
                    PartUse::Yield(first, at) => self.ifs.get(&first).is_some_and(|(_, results)| {
                        let given = at.checked_sub(k).and_then(|start| results.get(start..start + pack.len()));
                        given.is_some_and(|given| good.contains(given))
                    }),
                    PartUse::Select(result) => pack_of.get(&result).is_some_and(|chosen| {
                        chosen.get(k) == Some(&result)
                            && self.chosen(chosen).is_some_and(|sides| sides.iter().any(|side| side == pack))
                    }),
                    PartUse::Other => false,
                })
            })
    }
}

struct Rewriter {
    types: Vec<Type>,
    constants: Constants,
    /// The packs that become words, by their first part.
    words: HashMap<Value, (WordParts, Value)>,
    mixer: Mixer,
    /// The packs of selects.
    choices: Vec<SelectPack>,
    /// The replacements of the results of joins.
    replacements: HashMap<Value, Value>,
}

/// A pack of selects by one condition, which becomes one select.
struct SelectPack {
    pack: WordParts,
    sides: [WordParts; 2],
    /// The number of selects of the pack that were not visited yet.
    left: usize,
}

impl Rewriter {
    /// Returns the word of a pack, if it becomes one or is constant.
    fn word(&mut self, pack: &[Value]) -> Option<Value> {
        if let Some((known, word)) = self.words.get(&pack[0])
            && known[..] == *pack
        {
            return Some(*word);
        }
        let bits: Vec<u64> = pack.iter().map(|v| self.constants.bits(*v)).collect::<Option<_>>()?;
        let ty = word(&self.types, pack)?;
        let part = 32 / pack.len() as u32;
        Some(self.constants.get(&mut self.types, Type::Scalar(ty), integer::join(&bits, part)))
    }

    /// Returns the word of a pack, as [`Rewriter::word`] does, or mixes it. The mixing code is
    /// appended to `inserts`.
    fn word_or_mixed(&mut self, pack: &[Value], location: Location, inserts: &mut Vec<Inst>) -> Option<Value> {
        if let Some(word) = self.word(pack) {
            return Some(word);
        }
        let (types, constants) = (&mut self.types, &mut self.constants);
        self.mixer.mix(pack, &mut InstructionList { types, constants, inserts, location })
    }

    /// Returns whether a pack becomes a word that is not a constant.
    fn known(&self, pack: &[Value]) -> bool {
        self.words.get(&pack[0]).is_some_and(|(known, _)| known[..] == *pack) || self.mixer.mixes(pack)
    }

    /// Returns the words of consecutive packs, if every pack has a word and at least one pack is
    /// not constant.
    fn all(&mut self, values: &[Value], location: Location, inserts: &mut Vec<Inst>) -> Option<Values> {
        let n = parts(self.types[values.first()?.0 as usize])?;
        if !values.len().is_multiple_of(n) || !values.chunks(n).any(|pack| self.known(pack)) {
            return None;
        }
        values.chunks(n).map(|pack| self.word_or_mixed(pack, location, inserts)).collect()
    }

    /// Returns `values`, with a word instead of each pack for which `results` have a word.
    fn merged(&mut self, values: &[Value], results: &[Value]) -> Values {
        let (mut merged, mut at) = (Values::new(), 0);
        while at < values.len() {
            let n = self.words.get(&results[at]).map_or(1, |(pack, _)| pack.len());
            let word = if n > 1 { self.word(&values[at..at + n]) } else { None };
            merged.push(word.unwrap_or(values[at]));
            at += if word.is_some() { n } else { 1 };
        }
        merged
    }

    /// Rewrites a region. `results` are the original results of the enclosing `If`.
    fn region(&mut self, region: &mut Region, results: &[Value]) {
        let outside = self.mixer.enter();
        rewrite(&mut region.insts, |inst, inserts| self.inst(inst, inserts, results));
        self.mixer.leave(outside);
    }

    /// Rewrites an instruction, and returns whether it stays.
    fn inst(&mut self, inst: &mut Inst, inserts: &mut Vec<Inst>, within: &[Value]) -> bool {
        inst.op.map_operands(|v| self.replacements.get(&v).copied().unwrap_or(v));
        let location = inst.location;
        match &mut inst.op {
            Op::Bits(Bits::Join, operands) if self.known(operands) => {
                if let Some(word) = self.word_or_mixed(operands, location, inserts) {
                    self.replacements.insert(inst.results[0], word);
                    return false;
                }
            }
            Op::Store { values, element, .. } => {
                if let Some(joined) = self.all(values, location, inserts) {
                    *element = self.types[joined[0].0 as usize].scalar().unwrap_or(*element);
                    *values = joined;
                }
            }
            Op::Load { element, guard, .. } => {
                if let Some(joined) = self.all(&inst.results, location, inserts) {
                    *element = self.types[joined[0].0 as usize].scalar().unwrap_or(*element);
                    if let Some(guard) = guard {
                        let n = guard.otherwise.len() / joined.len();
                        guard.otherwise = guard.otherwise.chunks(n).filter_map(|pack| self.word(pack)).collect();
                    }
                    inst.results = joined;
                }
            }
            Op::Select { yes, no, .. } => {
                let Some(choice) = self.choices.iter_mut().find(|c| c.pack.contains(&inst.results[0])) else {
                    return true;
                };
                choice.left -= 1;
                if choice.left > 0 {
                    return false;
                }
                // At the last select of the pack, all operands are defined.
                let (pack, [a, b]) = (choice.pack.clone(), choice.sides.clone());
                if let (Some(a), Some(b), Some(word)) = (self.word(&a), self.word(&b), self.word(&pack)) {
                    (*yes, *no) = (a, b);
                    inst.results = [word].into_iter().collect();
                }
            }
            Op::If { then, otherwise, .. } => {
                let results = std::mem::take(&mut inst.results);
                self.region(then, &results);
                self.region(otherwise, &results);
                inst.results = self.merged(&results, &results);
                return true;
            }
            Op::Yield(values) if !within.is_empty() => *values = self.merged(values, within),
            op => op.regions_mut().into_iter().for_each(|r| self.region(r, &[])),
        }
        true
    }
}
