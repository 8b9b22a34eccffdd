//! Legs of a volume that come, leave and take the place of others while it serves.

use super::Stack;
use crate::compose::LEGS_MAX;
use crate::leg::LegState;
use crate::mark::Mark;
use crate::used;
use flashyard_live::FrontEnds;
use flashyard_service::{Leg, Service};
use flashyard_services::COPIED;
use flashyard_units::SimTime;

impl Stack {
    /// Storage becomes one more leg of a mirror, which copies everything to it.
    ///
    /// Errors: no such mirror, storage that is too small.
    pub(crate) fn attach(
        &mut self,
        now: SimTime,
        node: usize,
        mut storage: LegState,
        fronts: &mut FrontEnds,
    ) -> Result<(), String> {
        if self.reshape.is_some() || self.replacing.is_some() {
            return Err("it is being changed already; try again".to_owned());
        }
        // Numbers of legs are bytes, and those of storage that has left are not used again.
        if self.legs.len() >= LEGS_MAX {
            return Err(format!("more than {LEGS_MAX} pieces of storage"));
        }
        let infos = self.infos();
        let needs = self.service.least_leg(node, &infos);
        let has = storage.info().limits.blocks;
        if has < needs {
            return Err(format!("{} has {has} blocks, and the legs of s{node} have {needs}", storage.name));
        }
        takes_as_much(self, node, &storage)?;
        if self.service.is_mirror(node) {
            used::keep(&mut storage, needs)?;
        }
        let leg = self.add_leg(storage);
        let mut out = std::mem::take(&mut self.out);
        let is_taken = self.service.tree(&infos).attach(now, node, leg, &mut out);
        self.out = out;
        if !is_taken {
            self.legs.pop();
            return Err(format!("s{node} is no mirror that takes one more leg"));
        }
        self.wake_at = Some(now);
        self.carry_out(now, None, fronts);
        self.settle(now, fronts);
        Ok(())
    }

    /// A leg of a mirror is used no more.
    ///
    /// Errors: no such leg, or one that cannot be missed.
    pub(crate) fn detach(&mut self, now: SimTime, number: usize, fronts: &mut FrontEnds) -> Result<(), String> {
        self.may_miss(number)?;
        self.drop_leg(now, number, "it was detached", fronts);
        Ok(())
    }

    /// A leg is used no more, whatever that does to the volume.
    pub(crate) fn drop_leg(&mut self, now: SimTime, number: usize, why: &str, fronts: &mut FrontEnds) {
        self.legs[number].gone.get_or_insert_with(|| why.to_owned());
        self.tell_gone(now, number, fronts);
        self.settle(now, fronts);
    }

    /// Storage that will take the place of a leg.
    pub(crate) fn incoming(&self) -> Option<&LegState> {
        self.replacing.as_ref().map(|(_, storage)| storage)
    }

    /// Whether the volume can go on without a leg.
    ///
    /// Errors: why it cannot.
    pub(crate) fn may_miss(&self, number: usize) -> Result<(), String> {
        if number >= self.legs.len() {
            return Err(format!("there is no leg {number}, give 0 to {}", self.legs.len() - 1));
        }
        if self.replacing.is_some() || self.reshape.is_some() {
            return Err("a leg is being replaced already; try again".to_owned());
        }
        if self.service.can_miss(Leg(number as u8)) {
            return Ok(());
        }
        let left = self.rebuild().map_or(0, |rebuild| rebuild.left);
        Err(match left {
            0 => format!("no mirror has the blocks of leg {number} elsewhere, and no array makes up for them now"),
            left => format!("leg {number} alone has some blocks; {left} are being copied, try again when they are"),
        })
    }

    /// The mark that storage must have to take the place of a leg.
    ///
    /// Errors: a leg that cannot be missed, storage that is too small or takes too little at once.
    pub(crate) fn mark_for(&mut self, number: usize, storage: &LegState) -> Result<Mark, String> {
        let count = self.legs.len();
        let Some(leg) = self.legs.get(number) else {
            return Err(format!("there is no leg {number}, give 0 to {}", count - 1));
        };
        let (has, needs) = (storage.info().limits.blocks, leg.info().limits.blocks);
        if has < needs {
            return Err(format!("{} has {has} blocks, and the leg has {needs}", storage.name));
        }
        self.may_miss(number)?;
        let mirror = self.service.mirror_of(Leg(number as u8));
        match (&leg.label, mirror) {
            (Some(label), _) => {
                let label = label.clone();
                // An array asks for as much at once as all its legs took when it started.
                let members = self.legs.iter().filter(|leg| leg.label.is_some());
                let most = members.map(|leg| leg.info().limits.request_blocks).min().unwrap_or(0);
                let (takes, name) = (storage.info().limits.request_blocks, storage.name.as_str());
                if takes < most {
                    return Err(format!("{name} takes {takes} blocks at once, and the legs of the array {most}"));
                }
                Ok(Mark::Label(Box::new(label)))
            }
            (None, Some(node)) => {
                takes_as_much(self, node, storage)?;
                Ok(Mark::Used(needs))
            }
            (None, None) => Ok(Mark::None),
        }
    }

    /// Lets other storage take the place of a leg, once what is under way there has ended. It has its mark already, or gets it while all volumes wait.
    ///
    /// Errors: as of [`Stack::mark_for`]; storage that belongs to an array.
    pub(crate) fn replace(
        &mut self,
        now: SimTime,
        number: usize,
        mut storage: LegState,
        fronts: &mut FrontEnds,
    ) -> Result<(), String> {
        self.mark_for(number, &storage)?.put_on(&mut storage)?;
        self.drop_leg(now, number, "it is being replaced", fronts);
        self.replacing = Some((number, storage));
        Ok(())
    }

    #[cold]
    pub(super) fn replace_when_idle(&mut self, now: SimTime, fronts: &mut FrontEnds) {
        let is_idle = |number: usize| self.legs[number].is_told && self.under_way(number) == 0;
        if !self.replacing.as_ref().is_some_and(|(number, _)| is_idle(*number)) {
            return;
        }
        let Some((number, storage)) = self.replacing.take() else { return };
        let leg = &mut self.legs[number];
        let LegState { name: old, carried, .. } = std::mem::replace(leg, storage);
        leg.carried = carried;
        if self.service.replaced(Leg(number as u8)) {
            tracing::info!(volume = %self.name, leg = number, old, new = %leg.name, "a leg was replaced and is rebuilt");
            self.wake_at = Some(now);
        } else {
            leg.gone = Some("no service makes its copies".to_owned());
        }
        self.settle(now, fronts);
    }
}

/// Makes requests as short as storage takes them that comes below a mirror.
///
/// Errors: it takes less than the services above have been told, or than requests under way have.
fn takes_as_much(stack: &mut Stack, mirror: usize, storage: &LegState) -> Result<(), String> {
    let (takes, name) = (storage.info().limits.request_blocks, &storage.name);
    if takes >= stack.request_blocks {
        return Ok(());
    }
    if u64::from(takes) < COPIED {
        return Err(format!("{name} takes {takes} blocks at once, and copies are of {COPIED}"));
    }
    if mirror != 0 {
        let most = stack.request_blocks;
        return Err(format!("{name} takes {takes} blocks at once, and the services above s{mirror} ask for {most}"));
    }
    stack.request_blocks = takes;
    if stack.held.requests.iter().any(|(_, asked)| asked.part > takes) {
        return Err(format!("{name} takes {takes} blocks at once, and longer requests are under way; try again"));
    }
    Ok(())
}
