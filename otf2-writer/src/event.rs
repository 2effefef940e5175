//! Events of a location: the records of event files.

use crate::{
    AttributeId, CommId, LocationId, MetricId, Paradigm, RegionId, StringId, Type,
    encode::{self, UNDEFINED_U64},
};

const ATTRIBUTE_LIST: u8 = 6;
const ENTER: u8 = 12;
const LEAVE: u8 = 13;
const METRIC: u8 = 31;
const THREAD_FORK: u8 = 53;
const THREAD_JOIN: u8 = 54;
const THREAD_TEAM_BEGIN: u8 = 55;
const THREAD_TEAM_END: u8 = 56;
const THREAD_ACQUIRE_LOCK: u8 = 57;
const THREAD_RELEASE_LOCK: u8 = 58;
const THREAD_CREATE: u8 = 62;
const THREAD_BEGIN: u8 = 63;
const THREAD_WAIT: u8 = 64;
const THREAD_END: u8 = 65;

/// An event of one location. [`Archive::write`](crate::Archive::write) gives it a time.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A region is entered. It nests in the regions that are open at this location.
    Enter(RegionId),
    /// The innermost open region of this location is left; it must be this one.
    Leave(RegionId),
    /// The values of the members of a metric; at most 255.
    Metric(MetricId, &'a [MetricValue]),
    /// This location forks a team of this many threads.
    ThreadFork(Paradigm, u32),
    /// The team that this location forked last is joined.
    ThreadJoin(Paradigm),
    /// This location starts work in a team.
    ThreadTeamBegin(CommId),
    /// This location ends its work in a team.
    ThreadTeamEnd(CommId),
    /// A lock is acquired.
    ThreadAcquireLock(Lock),
    /// A lock is released.
    ThreadReleaseLock(Lock),
    /// This location creates a thread of this communicator.
    ThreadCreate(CommId, ThreadNumber),
    /// This location, the thread that was created, begins.
    ThreadBegin(CommId, ThreadNumber),
    /// This location waits for a thread of this communicator to end.
    ThreadWait(CommId, ThreadNumber),
    /// This location ends. The number is the number of the [`Event::ThreadWait`] that waits for it, if there is one.
    ThreadEnd(CommId, Option<ThreadNumber>),
}

/// Matches a [`Event::ThreadCreate`] with its [`Event::ThreadBegin`], or a [`Event::ThreadWait`] with its
/// [`Event::ThreadEnd`]; unique within the communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadNumber(pub u64);

/// An acquisition or release of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lock {
    /// The paradigm (threading model) of the lock.
    pub model: Paradigm,
    /// Id of the lock.
    pub lock: u32,
    /// Number of this acquisition. The release has the same number.
    pub acquisition: u32,
}

/// The value of one member of a metric, of the type in the member's definition.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MetricValue {
    /// Unsigned.
    U64(u64),
    /// Signed.
    I64(i64),
    /// Floating point.
    F64(f64),
}

/// The value of an attribute, of the type in the attribute's definition.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AttributeValue {
    /// Unsigned.
    U64(u64),
    /// Signed.
    I64(i64),
    /// Floating point.
    F64(f64),
    /// A string.
    String(StringId),
    /// A location.
    Location(LocationId),
}

impl AttributeValue {
    /// Its type.
    pub fn ty(self) -> Type {
        match self {
            AttributeValue::U64(_) => Type::U64,
            AttributeValue::I64(_) => Type::I64,
            AttributeValue::F64(_) => Type::F64,
            AttributeValue::String(_) => Type::String,
            AttributeValue::Location(_) => Type::Location,
        }
    }

    fn encode(self, out: &mut Vec<u8>) {
        match self {
            AttributeValue::U64(value) => encode::u64(out, value),
            AttributeValue::I64(value) => encode::i64(out, value),
            AttributeValue::F64(value) => out.extend_from_slice(&value.to_le_bytes()),
            AttributeValue::String(string) => encode::u32(out, string.0),
            AttributeValue::Location(location) => encode::u64(out, location.0),
        }
    }
}

impl Event<'_> {
    /// The record, preceded by the list of its attributes, if it has any.
    #[inline]
    pub(crate) fn encode(&self, attributes: &[(AttributeId, AttributeValue)], out: &mut Vec<u8>) {
        if !attributes.is_empty() {
            encode::record(out, ATTRIBUTE_LIST, |out| attribute_list(attributes, out));
        }
        match *self {
            // Enter and leave records have no length field.
            Event::Enter(region) => {
                out.push(ENTER);
                encode::u32(out, region.0);
            }
            Event::Leave(region) => {
                out.push(LEAVE);
                encode::u32(out, region.0);
            }
            Event::Metric(metric, values) => {
                encode::record(out, METRIC, |out| metric_body(metric, values, out))
            }
            Event::ThreadFork(model, threads) => encode::record(out, THREAD_FORK, |out| {
                out.push(model.into());
                encode::u32(out, threads);
            }),
            Event::ThreadJoin(model) => encode::record(out, THREAD_JOIN, |out| out.push(model.into())),
            Event::ThreadTeamBegin(team) => {
                encode::record(out, THREAD_TEAM_BEGIN, |out| encode::u32(out, team.0))
            }
            Event::ThreadTeamEnd(team) => {
                encode::record(out, THREAD_TEAM_END, |out| encode::u32(out, team.0))
            }
            Event::ThreadAcquireLock(lock) => {
                encode::record(out, THREAD_ACQUIRE_LOCK, |out| lock_body(lock, out))
            }
            Event::ThreadReleaseLock(lock) => {
                encode::record(out, THREAD_RELEASE_LOCK, |out| lock_body(lock, out))
            }
            Event::ThreadCreate(comm, number) => thread_record(THREAD_CREATE, comm, number.0, out),
            Event::ThreadBegin(comm, number) => thread_record(THREAD_BEGIN, comm, number.0, out),
            Event::ThreadWait(comm, number) => thread_record(THREAD_WAIT, comm, number.0, out),
            Event::ThreadEnd(comm, number) => {
                thread_record(THREAD_END, comm, number.map_or(UNDEFINED_U64, |number| number.0), out);
            }
        }
    }
}

fn attribute_list(attributes: &[(AttributeId, AttributeValue)], out: &mut Vec<u8>) {
    encode::u32(out, attributes.len() as u32);
    for (attribute, value) in attributes {
        encode::u32(out, attribute.0);
        out.push(value.ty().into());
        value.encode(out);
    }
}

/// A value of any type is encoded as the unsigned integer with its bits. [`Archive::write`](crate::Archive::write) has
/// checked that there are at most 255 values.
fn metric_body(metric: MetricId, values: &[MetricValue], out: &mut Vec<u8>) {
    encode::u32(out, metric.0);
    out.push(values.len() as u8);
    for value in values {
        let (ty, bits) = match *value {
            MetricValue::U64(value) => (Type::U64, value),
            MetricValue::I64(value) => (Type::I64, value as u64),
            MetricValue::F64(value) => (Type::F64, value.to_bits()),
        };
        out.push(ty.into());
        encode::u64(out, bits);
    }
}

fn lock_body(lock: Lock, out: &mut Vec<u8>) {
    out.push(lock.model.into());
    encode::u32(out, lock.lock);
    encode::u32(out, lock.acquisition);
}

fn thread_record(kind: u8, comm: CommId, number: u64, out: &mut Vec<u8>) {
    encode::record(out, kind, |out| {
        encode::u32(out, comm.0);
        encode::u64(out, number);
    });
}
