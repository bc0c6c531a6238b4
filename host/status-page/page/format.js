// Numbers, durations, sizes and times as people read them. A space before a unit does not break.

const NBSP = "\u00a0";

export function count(n) {
  if (n === undefined || n === null) return "–";
  if (n >= 1e9) return (n / 1e9).toFixed(1) + NBSP + "G";
  if (n >= 1e6) return (n / 1e6).toFixed(1) + NBSP + "M";
  if (n >= 1e4) return (n / 1e3).toFixed(1) + NBSP + "k";
  return Number.isInteger(n) ? String(n) : n < 10 ? n.toFixed(2) : n.toFixed(1);
}

export function duration(us) {
  if (us === undefined || us === null) return "–";
  if (us < 1000) return us.toFixed(us < 10 ? 1 : 0) + NBSP + "µs";
  if (us < 1e6) return (us / 1e3).toFixed(us < 1e4 ? 2 : 1) + NBSP + "ms";
  return (us / 1e6).toFixed(us < 1e7 ? 2 : 1) + NBSP + "s";
}

export function bytes(n) {
  if (n === undefined || n === null) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  while (n >= 1024 && at < units.length - 1) { n /= 1024; at += 1; }
  return (at === 0 || n >= 100 ? n.toFixed(0) : n.toFixed(1)) + NBSP + units[at];
}

export function ago(ms, now) {
  const s = Math.max(0, Math.round((now - ms) / 1000));
  if (s < 60) return s + NBSP + "s";
  if (s < 3600) return Math.floor(s / 60) + " min";
  if (s < 86400) return Math.floor(s / 3600) + " h " + Math.floor((s % 3600) / 60) + " min";
  return Math.floor(s / 86400) + " d " + Math.floor((s % 86400) / 3600) + " h";
}

export function clock(ms) {
  const two = (n, digits = 2) => String(n).padStart(digits, "0");
  const t = new Date(ms);
  return `${two(t.getHours())}:${two(t.getMinutes())}:${two(t.getSeconds())}.${two(t.getMilliseconds(), 3)}`;
}

export const sum = (object) => Object.values(object || {}).reduce((a, b) => a + b, 0);
