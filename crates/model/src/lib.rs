pub mod hostlist;
