//! The locations of each CPU, LWP and user thread.

use std::io;

use otf2_writer::{
    Archive, AttributeId, AttributeValue, Event, Location, LocationGroupId, LocationId, LocationType,
    RegionId,
};
use sigmund_model::Ticks;

use crate::timeline::{Actors, Track};

/// The kinds of locations of an actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LocationKind {
    /// States of the actor; of a CPU: the LWPs it runs.
    Own = 0,
    /// User threads that are mounted on an LWP, or that a CPU executes.
    Carried = 1,
    /// Slices.
    Slices = 2,
    /// Events, wakeups and migrations, which have zero length.
    Instants = 3,
}

/// Number of kinds.
const KINDS: usize = 4;

/// The locations of all actors: CPUs first, then LWPs, then user threads.
#[derive(Debug)]
pub(super) struct Locations {
    all: Vec<ActorLocations>,
    cpus: usize,
    lwps: usize,
    /// For events without a known CPU, LWP and user thread.
    unknown_place: Option<Location>,
    unknown_place_group: LocationGroupId,
}

#[derive(Debug)]
struct ActorLocations {
    group: LocationGroupId,
    locations: [Option<Location>; KINDS],
    /// The open region of each location that has at most one: [`LocationKind::Own`] and [`LocationKind::Carried`].
    open: [Option<RegionId>; 2],
    slices: Vec<RegionId>,
}

impl Locations {
    /// Adds the first location of each actor. The first group is for CPUs, the others for the processes.
    pub(super) fn new(
        archive: &mut Archive,
        actors: &Actors,
        groups: &[LocationGroupId],
    ) -> io::Result<Locations> {
        let (cpu_group, processes) = (groups[0], &groups[1..]);
        let actor =
            |group| ActorLocations { group, locations: [None; KINDS], open: [None; 2], slices: Vec::new() };
        let cpus = actors.cpus.iter().map(|_| actor(cpu_group));
        let lwps = actors.lwps.iter().map(|lwp| actor(processes[lwp.process.index()]));
        let threads = actors.threads.iter().map(|thread| actor(processes[thread.process.index()]));
        let all = cpus.chain(lwps).chain(threads).collect();
        let (cpus, lwps) = (actors.cpus.len(), actors.lwps.len());
        let mut locations =
            Locations { all, cpus, lwps, unknown_place: None, unknown_place_group: cpu_group };
        let tracks = actors.cpu_ids().map(Track::Cpu).chain(actors.lwp_ids().map(Track::Lwp));
        for track in tracks.chain(actors.thread_ids().map(Track::Thread)) {
            locations.location(archive, actors, track, LocationKind::Own)?;
        }
        if locations.all.is_empty() {
            // Readers reject an archive without locations.
            locations.unknown_place(archive)?;
        }
        Ok(locations)
    }

    /// The id of a location.
    pub(super) fn location_id(&self, track: Track, kind: LocationKind) -> LocationId {
        LocationId((self.index(track) * KINDS + kind as usize) as u64)
    }

    /// The first id that no actor uses.
    pub(super) fn first_free_id(&self) -> u64 {
        (self.all.len() * KINDS + 1) as u64
    }

    /// The location of an actor's own states.
    pub(super) fn own(&self, track: Track) -> Option<Location> {
        self.all[self.index(track)].locations[LocationKind::Own as usize]
    }

    /// Leaves the region of a location, and enters another one.
    pub(super) fn switch(
        &mut self,
        archive: &mut Archive,
        actors: &Actors,
        tick: Ticks,
        (track, kind): (Track, LocationKind),
        region: Option<RegionId>,
        values: &[(AttributeId, AttributeValue)],
    ) -> io::Result<()> {
        let actor = self.index(track);
        let before = std::mem::replace(&mut self.all[actor].open[kind as usize], region);
        if before.is_none() && region.is_none() {
            return Ok(());
        }
        let location = self.location(archive, actors, track, kind)?;
        if let Some(before) = before {
            archive.write(location, tick.0, Event::Leave(before), &[])?;
        }
        match region {
            Some(region) => archive.write(location, tick.0, Event::Enter(region), values),
            None => Ok(()),
        }
    }

    /// Enters a slice.
    pub(super) fn enter(
        &mut self,
        archive: &mut Archive,
        actors: &Actors,
        tick: Ticks,
        track: Track,
        region: RegionId,
    ) -> io::Result<()> {
        let location = self.location(archive, actors, track, LocationKind::Slices)?;
        let actor = self.index(track);
        self.all[actor].slices.push(region);
        archive.write(location, tick.0, Event::Enter(region), &[])
    }

    /// Leaves the innermost slice.
    pub(super) fn leave(&mut self, archive: &mut Archive, tick: Ticks, track: Track) -> io::Result<()> {
        let actor = self.index(track);
        let actor = &mut self.all[actor];
        match (actor.locations[LocationKind::Slices as usize], actor.slices.pop()) {
            (Some(location), Some(region)) => archive.write(location, tick.0, Event::Leave(region), &[]),
            _ => Ok(()),
        }
    }

    /// Writes a region of zero length.
    pub(super) fn instant(
        &mut self,
        archive: &mut Archive,
        actors: &Actors,
        tick: Ticks,
        track: Option<Track>,
        region: RegionId,
        values: &[(AttributeId, AttributeValue)],
    ) -> io::Result<()> {
        let location = match track {
            Some(track) => self.location(archive, actors, track, LocationKind::Instants)?,
            None => self.unknown_place(archive)?,
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
        actors: &Actors,
        track: Track,
        kind: LocationKind,
    ) -> io::Result<Location> {
        match self.all[self.index(track)].locations[kind as usize] {
            Some(location) => Ok(location),
            None => self.add_location(archive, actors, track, kind),
        }
    }

    #[cold]
    fn add_location(
        &mut self,
        archive: &mut Archive,
        actors: &Actors,
        track: Track,
        kind: LocationKind,
    ) -> io::Result<Location> {
        let name = archive.definitions().string(&label(actors, track, kind))?;
        let (id, index) = (self.location_id(track, kind), self.index(track));
        let actor = &mut self.all[index];
        let location = archive.add_location(id, name, LocationType::CpuThread, actor.group)?;
        actor.locations[kind as usize] = Some(location);
        Ok(location)
    }

    fn unknown_place(&mut self, archive: &mut Archive) -> io::Result<Location> {
        if let Some(location) = self.unknown_place {
            return Ok(location);
        }
        let name = archive.definitions().string("CPU not known: events")?;
        let id = LocationId(self.first_free_id() - 1);
        let location = archive.add_location(id, name, LocationType::CpuThread, self.unknown_place_group)?;
        self.unknown_place = Some(location);
        Ok(location)
    }
}

fn label(actors: &Actors, track: Track, kind: LocationKind) -> String {
    let actor = match track {
        Track::Cpu(cpu) => format!("CPU {}", actors[cpu]),
        Track::Lwp(lwp) => actors[lwp].label(),
        Track::Thread(thread) => actors.thread_label(thread),
    };
    match (kind, track) {
        (LocationKind::Own, _) => actor,
        (LocationKind::Carried, _) => format!("{actor}: user thread"),
        (LocationKind::Slices, Track::Cpu(_)) => format!("{actor}: interrupts"),
        (LocationKind::Slices, Track::Lwp(_)) => format!("{actor}: calls"),
        (LocationKind::Slices, Track::Thread(_)) => format!("{actor}: spans"),
        (LocationKind::Instants, _) => format!("{actor}: events"),
    }
}
