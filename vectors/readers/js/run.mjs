// Golden vectors in JavaScript, no dependency: `node run.mjs [--wrong] FILE.json ...` says what is wrong.
// `import { judge, read } from "./run.mjs"` does the same for implementations of your own.

import { existsSync, readFileSync, realpathSync } from "node:fs";
import { pathToFileURL } from "node:url";

// What is on trial: bits in, bits out, as BigInt. Put yours here.

const word = new DataView(new ArrayBuffer(4));
function f32(bits) {
  word.setUint32(0, Number(bits));
  return word.getFloat32(0);
}

function bitsOf(x) {
  word.setFloat32(0, x); // rounds to f32
  return BigInt(word.getUint32(0));
}

const RIGHT = {
  "casts/cast-f32-bf16": (x) => (Number.isNaN(f32(x)) ? 0x7fc0n : (x + 0x7fffn + ((x >> 16n) & 1n)) >> 16n),
  "functions/log1p-f32": (x) => bitsOf(Math.log1p(f32(x))),
};
const WRONG = {
  "casts/cast-f32-bf16": (x) => x >> 16n,
  "functions/log1p-f32": (x) => bitsOf(Math.log(Math.fround(1 + f32(x)))),
};

export function read(path) {
  const data = JSON.parse(readFileSync(path, "utf8"));
  const cases = data.groups?.flatMap((group) => group.cases);
  if (data.format !== "halfulp-vectors-1" || data.count !== cases?.length)
    throw new Error("no halfulp-vectors-1 file, or not all of it");
  return { ...data, cases };
}

const within = (ranges, got) => ranges.some(([low, high]) => BigInt(low) <= got && got <= BigInt(high));

// Distance from the exact result in units of 2^-32 ulp, in a format with IEEE's infinities; -1n if there is none.
function error(exact, format, got) {
  const [fractionBits, width] = [BigInt(format.fraction_bits), BigInt(format.width)];
  const fraction = BigInt.asUintN(format.fraction_bits, got);
  const field = BigInt.asUintN(format.exponent_bits, got >> fractionBits);
  if (exact.kind !== "number" || field === (1n << BigInt(format.exponent_bits)) - 1n) return -1n;
  const significand = field ? fraction | (1n << fractionBits) : fraction;
  const shift = (field || 1n) - BigInt(format.bias) - fractionBits - BigInt(exact.exponent);
  const sign = got >> (width - 1n) === BigInt(exact.negative) ? 1n : -1n;
  const distance = (significand << shift) - sign * BigInt(exact.significand); // a negative shift goes to the right
  return distance < 0n ? -distance : distance;
}

const thousandths = (distance) => String(((distance & 0xffffffffn) * 1000n) >> 32n).padStart(3, "0");
const off = (distance, most = "") =>
  distance < 0n ? "" : `, ${most}${distance >> 32n}.${thousandths(distance)} ulp off`;

const NONE = { allowed: 0, forbidden: 0, unspecified: 0 };
const shown = ({ allowed, forbidden, unspecified }) =>
  `${allowed} allowed, ${forbidden} forbidden, ${unspecified} unspecified`;

// Runs all cases of a file; prints the first five failures and a summary; adds to the total.
export function judge(data, implementation, total = { ...NONE }) {
  const [count, format] = [{ ...NONE }, data.formats[data.operation.result]];
  let worst = -1n;
  for (const one of data.cases) {
    const got = implementation(...one.inputs.map(BigInt));
    const verdict = ["allowed", "unspecified"].find((name) => within(one[name], got)) ?? "forbidden";
    const distance = one.exact ? error(one.exact, format, got) : -1n;
    if (distance > worst) worst = distance;
    total[verdict]++;
    if (++count[verdict] > 5 || verdict !== "forbidden") continue;
    const bits = `0x${got.toString(16).padStart(Math.ceil(format.width / 4), "0")}`;
    const allowed = one.allowed.map(([low, high]) => (low === high ? low : `${low}..${high}`)).join(" ");
    console.log(`${one.id} ${one.inputs.join(" ")} gives ${bits}${off(distance)}, allowed: ${allowed}`);
    const reasons = [...one.flags.map((flag) => data.flags[flag]), ...one.kills.map((name) => `suspect ${name}`)];
    for (const reason of one.note ? [...reasons, one.note] : reasons) console.log(`    ${reason}`);
  }
  console.log(`${data.name}: ${shown(count)}${off(worst, "at most ")}`);
  return count;
}

function main(options, mine = options.includes("--wrong") ? WRONG : RIGHT) {
  const [total, notRun] = [{ ...NONE }, {}];
  for (const path of options.filter((option) => option !== "--wrong")) {
    try {
      const data = read(path);
      if (data.name in mine) judge(data, mine[data.name], total);
      else notRun[data.kind] = (notRun[data.kind] ?? 0) + data.count;
    } catch (error) {
      console.error(`${path}: ${error.message}`);
      return 1;
    }
  }
  for (const kind in notRun) console.log(`not run: ${notRun[kind]} cases of kind ${kind}`);
  const left = Object.values(notRun).reduce((sum, cases) => sum + cases, 0);
  console.log(`all: ${shown(total)}, ${left} not run`);
  return total.allowed && !total.forbidden ? 0 : 1;
}

if (existsSync(process.argv[1] ?? "") && import.meta.url === pathToFileURL(realpathSync(process.argv[1])).href)
  process.exitCode = main(process.argv.slice(2));
