#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct CpuSet(Vec<u64>);
impl CpuSet {
    pub fn len(&self) -> u32 {
        0
    }
    pub fn insert(&mut self, _: u32) {}
    pub fn remove(&mut self, _: u32) {}
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        [].into_iter()
    }
}
