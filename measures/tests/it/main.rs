//! Each measure against a slow and obvious one on random machines, and on listings that were worked out on paper.

mod breakdown;
mod compare;
mod critical_path;
mod critical_sections;
mod empty;
mod explain;
mod functions;
mod gantt;
mod interrupts;
mod latency;
mod locks;
mod noise;
mod quanta;
mod reactivity;
mod slices;
mod states;
mod summary;
mod support;
mod switch_cost;
mod walk;
