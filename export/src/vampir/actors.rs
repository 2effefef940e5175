//! CPUs, LWPs and user threads, each with the locations that it is drawn at.

use std::io;

use sigmund_model::Ticks;

use crate::{
    otf2::{
        Archive, AttributeId, Event, Location, LocationGroupId, LocationId, LocationType, RegionId, Value,
    },
    timeline::{Cast, Track},
};

/// Locations of one actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    /// Its state; of a CPU, the LWP it runs.
    Own = 0,
    /// The user thread that it carries.
    Carried = 1,
    /// Slices.
    Slices = 2,
    /// What has no length.
    Flashes = 3,
}

/// As many as the last says.
const LANES: usize = 4;

/// All of them: CPUs first, then LWPs, then user threads.
#[derive(Debug)]
pub(super) struct Actors {
    all: Vec<Actor>,
    cpus: usize,
    lwps: usize,
    /// Where events are drawn of which nothing is known.
    nowhere: Option<Location>,
    nowhere_group: LocationGroupId,
}

#[derive(Debug)]
struct Actor {
    group: LocationGroupId,
    lanes: [Option<Location>; LANES],
    /// Of the lanes that are always in one region.
    open: [Option<RegionId>; 2],
    slices: Vec<RegionId>,
}

impl Actors {
    /// All who are in the cast. Their processes are the groups from the second on; the first is for CPUs.
    pub(super) fn new(archive: &mut Archive, cast: &Cast, groups: &[LocationGroupId]) -> io::Result<Actors> {
        let (cpu_group, processes) = (groups[0], &groups[1..]);
        let actor = |group| Actor { group, lanes: [None; LANES], open: [None; 2], slices: Vec::new() };
        let cpus = cast.cpus.iter().map(|_| actor(cpu_group));
        let lwps = cast.lwps.iter().map(|lwp| actor(processes[lwp.process.index()]));
        let threads = cast.threads.iter().map(|thread| actor(processes[thread.process.index()]));
        let all = cpus.chain(lwps).chain(threads).collect();
        let (cpus, lwps) = (cast.cpus.len(), cast.lwps.len());
        let mut actors = Actors { all, cpus, lwps, nowhere: None, nowhere_group: cpu_group };
        let tracks = cast.cpu_ids().map(Track::Cpu).chain(cast.lwp_ids().map(Track::Lwp));
        for track in tracks.chain(cast.thread_ids().map(Track::Thread)) {
            actors.location(archive, cast, track, Lane::Own)?;
        }
        if actors.all.is_empty() {
            // Readers refuse an archive without any location.
            actors.nowhere(archive)?;
        }
        Ok(actors)
    }

    /// The number of a location.
    pub(super) fn location_id(&self, track: Track, lane: Lane) -> LocationId {
        LocationId((self.index(track) * LANES + lane as usize) as u64)
    }

    /// The numbers that no actor has begin here.
    pub(super) fn first_free_id(&self) -> u64 {
        (self.all.len() * LANES + 1) as u64
    }

    /// Where an actor's own states are.
    pub(super) fn own(&self, track: Track) -> Option<Location> {
        self.all[self.index(track)].lanes[Lane::Own as usize]
    }

    /// A lane goes on with this region.
    pub(super) fn switch(
        &mut self,
        archive: &mut Archive,
        cast: &Cast,
        tick: Ticks,
        (track, lane): (Track, Lane),
        region: Option<RegionId>,
        values: &[(AttributeId, Value)],
    ) -> io::Result<()> {
        let actor = self.index(track);
        let before = std::mem::replace(&mut self.all[actor].open[lane as usize], region);
        if before.is_none() && region.is_none() {
            return Ok(());
        }
        let location = self.location(archive, cast, track, lane)?;
        if let Some(before) = before {
            archive.write(location, tick.0, Event::Leave(before), &[])?;
        }
        match region {
            Some(region) => archive.write(location, tick.0, Event::Enter(region), values),
            None => Ok(()),
        }
    }

    /// A slice begins.
    pub(super) fn enter(
        &mut self,
        archive: &mut Archive,
        cast: &Cast,
        tick: Ticks,
        track: Track,
        region: RegionId,
    ) -> io::Result<()> {
        let location = self.location(archive, cast, track, Lane::Slices)?;
        let actor = self.index(track);
        self.all[actor].slices.push(region);
        archive.write(location, tick.0, Event::Enter(region), &[])
    }

    /// The innermost slice ends.
    pub(super) fn leave(&mut self, archive: &mut Archive, tick: Ticks, track: Track) -> io::Result<()> {
        let actor = self.index(track);
        let actor = &mut self.all[actor];
        match (actor.lanes[Lane::Slices as usize], actor.slices.pop()) {
            (Some(location), Some(region)) => archive.write(location, tick.0, Event::Leave(region), &[]),
            _ => Ok(()),
        }
    }

    /// Something of no length.
    pub(super) fn flash(
        &mut self,
        archive: &mut Archive,
        cast: &Cast,
        tick: Ticks,
        track: Option<Track>,
        region: RegionId,
        values: &[(AttributeId, Value)],
    ) -> io::Result<()> {
        let location = match track {
            Some(track) => self.location(archive, cast, track, Lane::Flashes)?,
            None => self.nowhere(archive)?,
        };
        archive.write(location, tick.0, Event::Enter(region), values)?;
        archive.write(location, tick.0, Event::Leave(region), &[])
    }

    #[inline]
    fn index(&self, track: Track) -> usize {
        match track {
            Track::Cpu(cpu) => cpu.index(),
            Track::Lwp(lwp) => self.cpus + lwp.index(),
            Track::Thread(thread) => self.cpus + self.lwps + thread.index(),
        }
    }

    #[inline]
    fn location(
        &mut self,
        archive: &mut Archive,
        cast: &Cast,
        track: Track,
        lane: Lane,
    ) -> io::Result<Location> {
        match self.all[self.index(track)].lanes[lane as usize] {
            Some(location) => Ok(location),
            None => self.add_location(archive, cast, track, lane),
        }
    }

    #[cold]
    fn add_location(
        &mut self,
        archive: &mut Archive,
        cast: &Cast,
        track: Track,
        lane: Lane,
    ) -> io::Result<Location> {
        let name = archive.definitions().string(&label(cast, track, lane))?;
        let (id, index) = (self.location_id(track, lane), self.index(track));
        let actor = &mut self.all[index];
        let location = archive.add_location(id, name, LocationType::CpuThread, actor.group)?;
        actor.lanes[lane as usize] = Some(location);
        Ok(location)
    }

    fn nowhere(&mut self, archive: &mut Archive) -> io::Result<Location> {
        if let Some(location) = self.nowhere {
            return Ok(location);
        }
        let name = archive.definitions().string("CPU not known: events")?;
        let id = LocationId(self.first_free_id() - 1);
        let location = archive.add_location(id, name, LocationType::CpuThread, self.nowhere_group)?;
        self.nowhere = Some(location);
        Ok(location)
    }
}

fn label(cast: &Cast, track: Track, lane: Lane) -> String {
    let actor = match track {
        Track::Cpu(cpu) => format!("CPU {}", cast[cpu]),
        Track::Lwp(lwp) => cast[lwp].label(),
        Track::Thread(thread) => cast[thread].label(),
    };
    match (lane, track) {
        (Lane::Own, _) => actor,
        (Lane::Carried, _) => format!("{actor}: user thread"),
        (Lane::Slices, Track::Cpu(_)) => format!("{actor}: interrupts"),
        (Lane::Slices, Track::Lwp(_)) => format!("{actor}: calls"),
        (Lane::Slices, Track::Thread(_)) => format!("{actor}: spans"),
        (Lane::Flashes, _) => format!("{actor}: events"),
    }
}
