//! Variables of a thread: indexed elements of register arrays, and reads of uninitialized elements.

use crate::check::Check;
use crate::code::frame::{FULL, FrameRegister, LaneWord, lanes_of};
use crate::code::{Local, Pc};
use crate::machine::{ACCESSES, Machine, Warp};
use crate::report::{AccessValues, Description, Object, Space};
use runtime_simt::number::short;

impl Machine<'_, '_> {
    /// Reports reads of elements of a local that the thread has not written. `index` returns the
    /// element of a lane.
    #[cold]
    pub fn report_unwritten(&mut self, site: Pc, warp: u32, mask: u32, local: &Local, index: impl Fn(usize) -> u32) {
        let Local { name, len, .. } = local;
        self.report(Check::UninitializedLocal, site, warp, mask, |machine, lane| {
            let index = index(lane);
            let scalar = *len == 1;
            let what = if scalar { format!("`{name}`") } else { format!("element {index} of `{name}`") };
            let loads = local.ty.map(|ty| short(ty, machine.options.filled(ty)));
            let description = Description::new(format!("{what} is read before the thread has written it"));
            description.with(AccessValues { loads, ..AccessValues::default() }).about(Object {
                name: name.clone(),
                space: Space::Local,
                index: if scalar { vec![] } else { vec![index.into()] },
                extents: vec![(*len).into()],
                element: Some(index.into()),
            })
        });
    }

    /// Returns the lanes of `mask` whose index is within local `local`, and reports the others.
    fn within<const TIER: u8>(&mut self, site: Pc, warp: &Warp, mask: u32, local: u32, index: u32) -> u32 {
        let local = &self.program.code.locals[local as usize];
        let indices = u32::lanes(&warp.rows, index as usize);
        let bad = lanes_of(mask).filter(|lane| indices[*lane] >= local.len).fold(0, |m, lane| m | 1 << lane);
        if TIER >= ACCESSES && bad != 0 {
            self.report(Check::OutOfBounds, site, warp.index, bad, |machine, lane| {
                let (index, len, name) = (indices[lane], local.len, &local.name);
                let which = machine.which_access(site);
                let message = format!("index {index} is out of bounds of `{name}`, which has {len} elements{which}");
                Description::new(message).about(Object {
                    name: name.clone(),
                    space: Space::Local,
                    index: vec![index.into()],
                    extents: vec![len.into()],
                    element: Some(index.into()),
                })
            });
        }
        mask & !bad
    }

    /// Returns the element that all lanes of `mask` select and its index among all elements.
    /// Returns `None` if the lanes differ or the index is out of bounds.
    fn one_element(&self, warp: &Warp, mask: u32, local: u32, index: u32) -> Option<(FrameRegister, usize)> {
        let local = &self.program.code.locals[local as usize];
        let index = self.simd.uniform_word(&warp.rows, index, mask)?;
        (index < local.len).then(|| (local.at(index), (local.element + index) as usize))
    }

    /// Reads the element that `index` selects in each lane of `mask`. Reports reads that are out of
    /// bounds (the result is 0) or uninitialized (the result is the fill value).
    pub fn read_element<const TIER: u8>(
        &mut self,
        site: Pc,
        warp: &mut Warp,
        mask: u32,
        local: u32,
        index: u32,
        to: FrameRegister,
    ) {
        if let Some((element, written)) = self.one_element(warp, mask, local, index)
            && (TIER < ACCESSES || mask & !warp.written[written] == 0)
        {
            return self.simd.blend(&mut warp.rows, to, element, FULL);
        }
        let within = self.within::<TIER>(site, warp, mask, local, index);
        let local = &self.program.code.locals[local as usize];
        let indices = *u32::lanes(&warp.rows, index as usize);
        let mut missing = 0;
        to.fill(&mut warp.rows, 0);
        for lane in lanes_of(within) {
            if TIER >= ACCESSES && warp.written[(local.element + indices[lane]) as usize] >> lane & 1 == 0 {
                missing |= 1 << lane;
                to.set(&mut warp.rows, lane, self.options.filled(local.scalar()));
                continue;
            }
            let bits = local.at(indices[lane]).get(&warp.rows, lane);
            to.set(&mut warp.rows, lane, bits);
        }
        if missing != 0 {
            self.report_unwritten(site, warp.index, missing, local, |lane| indices[lane]);
        }
    }

    /// Writes `from` to the element that `index` selects in each lane of `mask`. Reports and
    /// suppresses writes out of bounds.
    pub fn write_element<const TIER: u8>(
        &mut self,
        site: Pc,
        warp: &mut Warp,
        mask: u32,
        local: u32,
        index: u32,
        from: FrameRegister,
    ) {
        if let Some((element, written)) = self.one_element(warp, mask, local, index) {
            self.simd.blend(&mut warp.rows, element, from, mask);
            warp.written[written] |= mask;
            return;
        }
        let within = self.within::<TIER>(site, warp, mask, local, index);
        let local = &self.program.code.locals[local as usize];
        let indices = *u32::lanes(&warp.rows, index as usize);
        for lane in lanes_of(within) {
            let bits = from.get(&warp.rows, lane);
            local.at(indices[lane]).set(&mut warp.rows, lane, bits);
            warp.written[(local.element + indices[lane]) as usize] |= 1 << lane;
        }
    }
}
