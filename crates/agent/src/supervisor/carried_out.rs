//! Requests that were carried out: one that comes again, because another leader took it up, is not carried out again. Kept
//! here, where the processes are: agents and controllers come and go.
use std::collections::VecDeque;

use model::command::RequestId;

/// More than come while one of them may still come again.
const KEPT: usize = 256;

#[derive(Default)]
pub struct CarriedOut(VecDeque<RequestId>);

impl CarriedOut {
    /// Notes the request; says whether it is to be carried out. One without an id never comes again.
    pub fn is_new(&mut self, request: Option<RequestId>) -> bool {
        let Some(request) = request else { return true };
        if self.0.contains(&request) {
            return false;
        }
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        self.0.push_back(request);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_carried_out_once() {
        let mut carried_out = CarriedOut::default();
        let one = |number| Some(RequestId(number, 1));
        assert!(carried_out.is_new(one(0)) && !carried_out.is_new(one(0)));
        assert!(carried_out.is_new(None) && carried_out.is_new(None), "without an id it cannot be known");
        assert!((1..KEPT as u64).all(|number| carried_out.is_new(one(number))));
        assert!(!carried_out.is_new(one(0)) && carried_out.is_new(one(1000)) && carried_out.is_new(one(0)));
    }
}
