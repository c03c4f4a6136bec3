//! End to end: real processes of the real binary on this machine, driven through its commands.
mod accounts;
mod batch;
mod chain;
mod cluster;
mod het;
mod history;
mod kill;
mod limits;
mod memory;
mod operate;
mod restart;
mod rules;
mod sharing;
mod slurm_conf;
mod steps;
mod suspend;
mod topology;
