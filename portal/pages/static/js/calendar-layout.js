// Where things of the calendar stand: rows below each other, bars along time. Pure: numbers in, numbers out.
// Times are seconds since 1970; places are pixels.

export const ROW = 26;
export const HEAD = 38;
const HOUR = 3600;
const DAY = 24 * HOUR;

/** Hours of each zoom, and the step to which pointers snap, in seconds. */
export const ZOOMS = {
  day: { hours: 24, step: 900 },
  week: { hours: 168, step: HOUR },
  "2weeks": { hours: 336, step: HOUR },
  "30days": { hours: 720, step: 6 * HOUR },
};

/** Pools below each other, each a heading and its rows. */
export function stacked(pools) {
  let y = 0;
  const heads = pools.map((pool) => {
    const head = { pool, y, end: y + HEAD + pool.rows * ROW };
    y = head.end;
    return head;
  });
  return { heads, height: y };
}

/** The top of a row; -1: there is none of that number. */
export function topOf(stack, index) {
  for (const { pool, y } of stack.heads) {
    if (index >= pool.first && index < pool.first + pool.rows) return y + HEAD + (index - pool.first) * ROW;
  }
  return -1;
}

/** The number of the row at that height; -1: a heading, or nothing. */
export function rowAt(stack, y) {
  for (const head of stack.heads) {
    if (y >= head.y && y < head.end) {
      return y < head.y + HEAD ? -1 : head.pool.first + Math.floor((y - head.y - HEAD) / ROW);
    }
  }
  return -1;
}

/** Numbers of the rows that are partly between two heights: [first, last). */
export function between(stack, top, bottom) {
  let first = Infinity;
  let last = 0;
  for (const head of stack.heads) {
    if (head.end <= top || head.y >= bottom || !head.pool.rows) continue;
    const rows = head.y + HEAD;
    const from = Math.max(0, Math.floor((top - rows) / ROW));
    const to = Math.min(head.pool.rows, Math.ceil((bottom - rows) / ROW));
    if (to <= from) continue;
    first = Math.min(first, head.pool.first + from);
    last = Math.max(last, head.pool.first + to);
  }
  return first === Infinity ? [0, 0] : [first, last];
}

/** Pixels from the left for an instant. `span` is {from, to, width}. */
export const xOf = (span, at) => ((at - span.from) / (span.to - span.from)) * span.width;

/** The instant at that place. */
export const timeAt = (span, x) => span.from + (x / span.width) * (span.to - span.from);

/**
 * Where a bar stands: {x, width, use: {x, width}, isCut}; null: outside. `use` is the part without preparing and cleaning,
 * `isCut` says that it goes on to the right.
 */
export function placed(span, bar) {
  const until = bar.until ?? Infinity;
  if (until <= span.from || bar.begin >= span.to) return null;
  const clip = (at) => xOf(span, Math.min(Math.max(at, span.from), span.to));
  const x = clip(bar.begin);
  const from = clip(bar.start ?? bar.begin);
  const to = clip(bar.end ?? until);
  return {
    x,
    width: Math.max(2, clip(until) - x),
    use: { x: from, width: Math.max(2, to - from) },
    isCut: until > span.to,
  };
}

export function snapped(at, step) {
  return Math.round(at / step) * step;
}

/** Whether no bar has the node in [begin, end). */
export function isFree(bars, begin, end) {
  return !bars.some((bar) => bar.begin < end && (bar.until ?? Infinity) > begin);
}

/** The instant until which the node stays free from that one on; null: something has it then. */
export function freeUntil(bars, at) {
  if (!isFree(bars, at, at + 1)) return null;
  return Math.min(Infinity, ...bars.filter((bar) => bar.begin > at).map((bar) => bar.begin));
}

const LEAST_LABEL = 46;

/** Midnight or the full hours in a span, in the reader's time: [{at, x, label, isDay}]. `utc`: whether in UTC. */
export function ticks(span, utc) {
  const hours = (span.to - span.from) / HOUR;
  const fits = Math.max(1, Math.floor(span.width / LEAST_LABEL));
  if (hours <= 48) {
    const step = [1, 2, 3, 6, 12, 24].find((each) => hours / each <= fits) ?? 24;
    return marks(span, utc, step * HOUR, (at) => (midnight(at, utc) ? dayLabel(at, utc) : hourLabel(at, utc)));
  }
  const days = Math.ceil(hours / 24);
  const skip = Math.ceil(days / fits);
  return marks(span, utc, DAY, (at, number) => (number % skip ? "" : dayLabel(at, utc, span.width / days < 58, !number)));
}

function marks(span, utc, step, label) {
  const found = [];
  let number = 0;
  for (let at = firstMark(span.from, step, utc); at < span.to; at = nextMark(at, step, utc)) {
    found.push({ at, x: xOf(span, at), label: label(at, number), isDay: midnight(at, utc) });
    number += 1;
  }
  return found;
}

function offset(at, utc) {
  return utc ? 0 : -new Date(at * 1000).getTimezoneOffset() * 60;
}

function firstMark(from, step, utc) {
  const shift = offset(from, utc);
  return Math.ceil((from + shift) / step) * step - shift;
}

/** The next one by the reader's clock, also over a change of daylight saving. */
function nextMark(at, step, utc) {
  const next = at + step;
  return next + offset(at, utc) - offset(next, utc);
}

const shifted = (at, utc) => new Date((at + offset(at, utc)) * 1000);
const midnight = (at, utc) => shifted(at, utc).getUTCHours() === 0 && shifted(at, utc).getUTCMinutes() === 0;
const DAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const two = (number) => String(number).padStart(2, "0");
const hourLabel = (at, utc) => `${two(shifted(at, utc).getUTCHours())}:${two(shifted(at, utc).getUTCMinutes())}`;

function dayLabel(at, utc, isShort = false, isFirst = false) {
  const date = shifted(at, utc);
  const day = date.getUTCDate();
  if (isShort) return day === 1 || isFirst ? `${MONTHS[date.getUTCMonth()]} ${day}` : String(day);
  return day === 1 ? `${MONTHS[date.getUTCMonth()]} 1` : `${DAYS[date.getUTCDay()]} ${day}`;
}

export const isWeekend = (at, utc) => [0, 6].includes(shifted(at, utc).getUTCDay());

/** `Nov 21, 08:00`, as the server writes instants. */
export function spokenAt(at, utc) {
  const date = shifted(at, utc);
  return `${MONTHS[date.getUTCMonth()]} ${date.getUTCDate()}, ${hourLabel(at, utc)}`;
}

/** For `<input type="datetime-local">`. */
export const asInput = (at, utc) => shifted(at, utc).toISOString().slice(0, 16);

/** Back from it; NaN if it is empty. */
export const fromInput = (text, utc) => Date.parse(`${text}${utc ? "Z" : ""}`) / 1000;

/** `6h`, `1d12h`, `45m`, as a manifest writes durations. */
export function exactSpan(seconds) {
  const minutes = Math.max(1, Math.round(seconds / 60));
  const parts = [[1440, "d"], [60, "h"], [1, "m"]];
  let left = minutes;
  let text = "";
  for (const [size, unit] of parts) {
    const amount = Math.floor(left / size);
    left -= amount * size;
    if (amount) text += `${amount}${unit}`;
  }
  return text;
}
