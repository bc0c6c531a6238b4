//! temporary
use super::*;
use std::time::Instant;
fn cpu() -> f64 {
    let s = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    s.split(' ').next().unwrap().parse::<f64>().unwrap()
}
#[test]
fn speed() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/models-trees");
    let (_session, backend) = start();
    for (m, f) in [("digits_lightgbm", "model.txt"), ("digits_xgboost", "model.ubj")] {
        let path = Path::new(root).join(m).join("1").join(f);
        let mut sp = spec(&path, dtype::FP32, vec![tensor("output__0", dtype::FP32, &[10])]);
        sp.inputs = vec![tensor("input__0", dtype::FP32, &[64])];
        sp.threads = 1;
        let model = backend.open_model(&sp).unwrap();
        let instance = model.open_instance(&InstanceSpec { threads: 1, ..InstanceSpec::default() }).unwrap();
        for rows in [1usize, 1000, 100000] {
            let mut state = 1u32;
            let data: Vec<f32> = (0..rows * 64).map(|_| { state = state.wrapping_mul(1664525).wrapping_add(1013904223); (state >> 28) as f32 / 16.0 }).collect();
            std::fs::write(format!("/tmp/trees/input-{rows}"), bytes(&data)).unwrap();
            let req = Request::new(rows as u32).input("input__0", dtype::FP32, &[rows as i64, 64], &bytes(&data)).request_output("output__0");
            let reqs = [req];
            let mut best = f64::MAX;
            for _ in 0..if rows > 1000 { 2 } else { 8 } {
                let n = if rows == 1 { 3000 } else if rows > 1000 { 1 } else { 30 };
                let (c, t) = (cpu(), Instant::now());
                for _ in 0..n { instance.execute_on_this_thread(&reqs); }
                let _ = t;
                best = best.min((cpu() - c) / n as f64 / 1000.0);
            }
            println!("SPEED {m} {rows} rows: {best:.1} us CPU");
        }
    }
}
