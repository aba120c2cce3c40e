"use strict";
// Sends the text to the program that serves this page, and shows what it answers. Nothing is stored.
const $ = (id) => document.getElementById(id);
const config = JSON.parse($("config").textContent);
const PLURAL = (n, one, many) => (n === 1 ? one : many);
const NUMBERS = ["none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "all ten"];

const source = () => document.querySelector("input[name=source]:checked").value;
const unit = () => config[source()].unit;
const choice = (at) => ({
  source: source(), mechanism: $(`mechanism-${at}`).value, epsilon: Number($(`epsilon-${at}`).value),
});
const compared = () => $("compare").checked;

async function post(path, content, signal) {
  const body = JSON.stringify(content);
  return fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body, signal });
}

// Choices

function offerMechanisms() {
  const names = Object.keys(config[source()].ranges);
  for (const at of [0, 1]) {
    const select = $(`mechanism-${at}`), before = select.value;
    select.replaceChildren(...names.map((name) => new Option(name, name)));
    select.value = names.includes(before) ? before : names[Math.min(at, names.length - 1)];
    offerRange(at);
  }
}

function offerRange(at) {
  const [low, high, step, start] = config[source()].ranges[$(`mechanism-${at}`).value];
  Object.assign($(`epsilon-${at}`), { min: low, max: high, step, value: start });
  moved(at);
}

const pending = [null, null], timers = [0, 0];

function moved(at) {
  $(`value-${at}`).textContent = Number($(`epsilon-${at}`).value).toPrecision(3).replace(/\.?0+$/, "");
  $(`epsilon-${at}`).setAttribute("aria-valuetext", `epsilon ${$(`value-${at}`).textContent}`);
  clearTimeout(timers[at]);
  if (at === 0 || compared()) timers[at] = setTimeout(() => look(at), 60);
}

async function look(at) {
  pending[at]?.abort();
  pending[at] = new AbortController();
  try {
    const reply = await post("shares", { text: $("text").value, ...choice(at) }, pending[at].signal);
    tell(at, await reply.json());
  } catch (error) {
    if (error.name !== "AbortError") tell(at, { problem: "the program that serves this page does not answer" });
  }
}

function tell(at, { shares, problem }) {
  const kinds = shares ? ["stays", "near", "far"].flatMap((kind, i) => Array(shares[i]).fill(kind)) : [];
  [...$(`dots-${at}`).children].forEach((dot, i) => { dot.className = kinds[i] || ""; });
  $(`live-${at}`).textContent = problem || sentence(shares);
}

function sentence([stay, near, far]) {
  const stays = unit() === "words" ? PLURAL(stay, "stays", "stay")
    : PLURAL(stay, "becomes the nearest public one", "become the nearest public ones");
  const rest = [near && `${NUMBERS[near]} ${PLURAL(near, "becomes a near one", "become near ones")}`,
    far && `${NUMBERS[far]} ${PLURAL(far, "another", "others")}`].filter(Boolean).join(", ");
  return `Of ten ${unit()} about ${NUMBERS[stay]} ${stays}${rest ? `; ${rest}` : ""}.`;
}

// Releases

let asked = null;

// One at a time; the example that is shown first gives way.
async function release(event) {
  event?.preventDefault();
  const button = document.querySelector(".primary"), result = $("result");
  if (asked && !asked.first) return;
  asked?.abort();
  const mine = Object.assign(new AbortController(), { first: !event });
  asked = mine;
  button.setAttribute("aria-busy", "true");
  hide();
  try {
    const choices = compared() ? [choice(0), choice(1)] : [choice(0)];
    const reply = await post("release", { text: $("text").value, choices }, mine.signal);
    // Of another status is what a guard in between says, which is no text of ours.
    const html = reply.ok ? await reply.text() : "";
    if (mine.signal.aborted) return;
    hide();
    result.innerHTML = html;
    if (!reply.ok) complain(result, `the text was refused (status ${reply.status}); is it too long?`);
    prepare(result);
    if (event && innerWidth < 832) result.scrollIntoView();
  } catch (error) {
    if (error.name !== "AbortError") complain(result, "the program that serves this page does not answer");
  } finally {
    if (asked === mine) {
      asked = null;
      button.setAttribute("aria-busy", "false");
    }
  }
}

function complain(result, problem) {
  const line = document.createElement("p");
  Object.assign(line, { className: "problem", textContent: problem });
  line.setAttribute("role", "alert");
  result.replaceChildren(line);
}

const LOW = 0.2;
let details = [];

function prepare(result) {
  details = [...result.querySelectorAll(".cards")].map((each) => JSON.parse(each.textContent));
  result.querySelectorAll(".texts .pane").forEach((pane, at) => {
    const own = details[Math.max(0, at - 1)];
    pane.querySelectorAll("[data-card]").forEach((word) => {
      word.told = [own.cards[word.dataset.card], own.size];
      const chance = word.told[0].posterior;
      if (at && chance !== null && chance < LOW) word.classList.add("doubtful");
    });
    pane.querySelectorAll(".w").forEach((word, i) => { word.place = i; });
  });
  $("doubt")?.addEventListener("change", (event) => result.classList.toggle("doubting", event.target.checked));
  result.classList.remove("doubting");
}

// The card of a word

const paragraph = (text) => Object.assign(document.createElement("p"), { textContent: text });

let shown = null;

function show(word) {
  hide();
  shown = { word, top: word.getBoundingClientRect().top };
  const [told, size] = word.told, card = $("card"), lines = [];
  const title = Object.assign(document.createElement("b"), {
    textContent: told.kind === "stays" && !told.entry ? `${told.original} stayed` : `${told.original} → ${told.released}`,
  });
  if (told.entry) lines.push(`Looked up as: ${told.entry}`);
  if (told.kind === "unknown") lines.push("The original is not in the space: any word comes out for it.");
  else if (told.rank) lines.push(`Number ${told.rank.toLocaleString("en")} of ${size.toLocaleString("en")} by nearness to the original.`);
  if (told.neighbours.length) lines.push(`Nearest to the original: ${told.neighbours.slice(0, told.entry ? 2 : 5).join(" · ")}`);
  if (told.posterior !== null) {
    const percent = told.posterior === 0 ? "0" : (100 * told.posterior).toPrecision(2);
    const what = told.entry ? "that this is what was looked up" : `that “${told.released}” is the original`;
    lines.push(`A reader of the release alone can be ${Number(percent)} % sure ${what}.`);
  }
  card.replaceChildren(title, ...lines.map(paragraph));
  card.hidden = false;
  for (const pane of $("result").querySelectorAll(".text")) pane.querySelectorAll(".w")[word.place]?.classList.add("on");
  const at = word.getBoundingClientRect(), own = card.getBoundingClientRect();
  const above = at.bottom + own.height + 12 > innerHeight;
  card.style.left = `${Math.max(8, Math.min(at.left, innerWidth - own.width - 8))}px`;
  card.style.top = `${above ? Math.max(8, at.top - own.height - 8) : at.bottom + 8}px`;
}

function hide() {
  $("card").hidden = true;
  shown = null;
  document.querySelectorAll(".on").forEach((word) => word.classList.remove("on"));
}

function walk(event) {
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  if (event.key === "Escape") hide();
  if (!step || !event.target.matches(".text")) return;
  const words = [...event.target.querySelectorAll("[data-card]")];
  if (!words.length) return;
  event.preventDefault();
  const now = words.findIndex((word) => word.classList.contains("on"));
  const next = words[now < 0 ? (step > 0 ? 0 : words.length - 1) : (now + step + words.length) % words.length];
  next.scrollIntoView({ block: "nearest" });
  show(next);
}

// Events

$("form").addEventListener("submit", release);
$("text").addEventListener("input", () => { moved(0); moved(1); });
$("compare").addEventListener("change", () => { $("choice-1").hidden = !compared(); moved(1); });
for (const each of document.querySelectorAll("input[name=source]")) each.addEventListener("change", offerMechanisms);
for (const at of [0, 1]) {
  $(`mechanism-${at}`).addEventListener("change", () => offerRange(at));
  $(`epsilon-${at}`).addEventListener("input", () => moved(at));
}
for (const each of document.querySelectorAll("[data-example]")) {
  each.addEventListener("click", () => {
    $("text").value = each.dataset.example;
    moved(0);
    moved(1);
    $("form").requestSubmit();
  });
}
const over = (event) => { const word = event.target.closest?.("[data-card]"); if (word?.told) show(word); else hide(); };
$("result").addEventListener("mouseover", over);
$("result").addEventListener("click", over);
$("result").addEventListener("mouseleave", hide);
$("result").addEventListener("focusout", hide);
document.addEventListener("keydown", walk);
// What was scrolled to before it was shown stays.
const away = () => shown && Math.abs(shown.word.getBoundingClientRect().top - shown.top) > 2;
addEventListener("scroll", () => { if (away() && !document.activeElement.matches(".text")) hide(); }, { passive: true });
// Something to look at from the start, and to type over.
const examples = [...document.querySelectorAll("[data-example]")].map((each) => each.dataset.example);
$("text").value = examples[0];
$("text").addEventListener("focus", () => { if (examples.includes($("text").value)) $("text").select(); });
offerMechanisms();
release();
