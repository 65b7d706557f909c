// The box office for one buyer. Another tab is another buyer: watch them take each other's seats.
import { $, ask, buyer, make, price, settings, when } from "./api";
import { amounts, buying, changed, drawBasket, leave, mine, open as mayPick, picked, resume, say } from "./buy";
import { finding } from "./find";
import type { EventQuery } from "./gql/graphql";
import { type Update, watch } from "./live";
import { EVENT } from "./operations";
import { type Letter, Plan } from "./plan";
import { selling } from "./sales";
import { type SeatMap, seatMap } from "./seatmap";

type Event = NonNullable<EventQuery["event"]>;

let event: Event | null = null;
let plan: Plan | null = null;
let map: SeatMap | null = null;
let stopWatching: (() => void) | null = null;
/** Events that were opened: what comes for an earlier one is not shown. */
let turns = 0;

$("who").textContent = buyer.token ? `You are ${buyer.name}.` : "Read only: this server gives out no tokens for trying things.";

/** Says how things stand; what was said already is not read out again. */
const state = (text: string, alarm = false) => {
  if ($("state").textContent !== text) $("state").textContent = text;
  $("state").toggleAttribute("data-alarm", alarm);
};
const numbers = (ids: Iterable<string>) => [...ids].flatMap((id) => plan?.number(id) ?? []);

/** Shows an event: its words and its plan, and then whatever the stream brings. */
async function show(id: string) {
  const turn = ++turns;
  stopWatching?.();
  map?.end();
  event = map = plan = null;
  leave();
  const found = (await ask(EVENT, { id })).event ?? null;
  if (turn !== turns) return;
  event = found;
  $("event").hidden = $("basket").hidden = !event;
  if (!event) return state("There is no such event.", true);
  $("title").textContent = event.title;
  $("place").textContent = `${event.venue.name}, ${event.venue.city}, ${when(event.startsAt, event.timeZone)}`;
  const [loaded] = await Promise.all([event.layout ? Plan.load(event.layout.geometryUrl) : null, resume(id)]);
  if (turn !== turns) return;
  plan = loaded;
  for (const element of ["map-tools", "legend"]) $(element).toggleAttribute("hidden", !plan);
  $("map")?.remove();
  if (plan) {
    map = seatMap(plan, { shown: shownAt, describe, pick: toggle, entered: (section) => { $<HTMLSelectElement>("sections").value = String(section); } });
    $("map-tools").after(map.element);
    drawSections(plan);
  }
  drawTiers();
  drawBasket();
  const opens = Date.parse(event.onSaleAt) - Date.now();
  // Not later than a timer can count.
  if (opens > 0 && opens < 2 ** 31) setTimeout(() => { if (turn === turns) void look(); }, opens + 500);
  stopWatching = watch(event.id, {
    update: take,
    state: (live, asOf) => {
      if (live && asOf) void look();
      const told = asOf ? ` What you see is of ${new Date(asOf).toLocaleTimeString()}.` : "";
      if (live) sayStatus(); else state(`Connection lost, reconnecting.${told}`, true);
    },
    failed: (message) => state(message, true),
  });
}

/** Reads again what an event says of its sale. */
async function look() {
  const turn = turns;
  const again = event && (await ask(EVENT, { id: event.id }).catch(() => null))?.event;
  if (!again || !event || turn !== turns) return;
  event.saleStatus = again.saleStatus;
  sayStatus();
}

/** What a seat is to this buyer. */
function shownAt(number: number) {
  const seat = plan!.seats[number]!;
  return mine(seat.seatId) ? "M" : plan!.letters[number]!;
}

const words = { A: "available", H: "held", S: "sold", B: "not for sale", M: "picked by you" };

function describe(number: number): string {
  const seat = plan!.seats[number]!;
  const zone = event?.priceZones.find((one) => one.name === seat.zone);
  const section = plan!.sections.length > 1 && plan!.sections[seat.section]!.name;
  const shown = shownAt(number);
  const now = shown === "M" && !mayPick() ? "yours" : words[shown];
  const parts = [section, `row ${seat.row}`, `seat ${seat.number}`, zone && price(zone.price), seat.accessible && "wheelchair", now];
  return parts.filter(Boolean).join(", ");
}

function toggle(number: number) {
  const seat = plan!.seats[number]!;
  if (!mayPick() || (plan!.letters[number] !== "A" && !picked.has(seat.seatId))) return;
  if (!picked.delete(seat.seatId)) picked.add(seat.seatId);
  map?.update([number]);
  changed();
}

/** The way to a section without a pointer, and back to the whole. */
function drawSections({ sections }: Plan) {
  const select = $<HTMLSelectElement>("sections");
  $("sections-label").hidden = sections.length < 2;
  select.replaceChildren(new Option("the whole plan", ""), ...sections.map(({ name }, index) => new Option(name, String(index))));
}

function drawTiers() {
  $("tiers").replaceChildren(...(event?.tiers ?? []).map((tier) => {
    const input = make("input", { type: "number", min: "0", max: "20", value: String(amounts.get(tier.id) ?? 0) });
    input.addEventListener("input", () => { amounts.set(tier.id, Math.max(0, Math.trunc(input.valueAsNumber || 0))); changed(); });
    const left = make("span", {}, ` of ${tier.available} left`);
    return make("label", {}, `${tier.name}, ${price(tier.price)} `, input, left);
  }));
}

const statuses: Partial<Record<Event["saleStatus"], string>> = {
  SCHEDULED: "The sale has not begun.", PAUSED: "The sale is paused.", ENDED: "The sale is over.", CANCELLED: "This event was called off.",
};

/** Whether there is something to be had. */
function sayStatus() {
  if (!event) return;
  const gone = event.tiers.every(({ available }) => available === 0) && !plan?.letters.includes("A") && (plan?.letters.some((letter) => letter !== "B") || event.tiers.length > 0);
  state(statuses[event.saleStatus] ?? (gone ? "Live. Sold out for now: what others give back shows up here." : "Live."));
}

/** What the stream brings. */
function take(update: Update) {
  if (update.__typename === "SeatMapSnapshot") {
    for (const { name, statuses } of update.sections) {
      const section = plan?.sections.find((one) => one.name === name);
      if (section) for (let i = 0; i < statuses.length; i++) plan!.letters[section.first + i] = statuses[i] as Letter;
    }
    if (plan) plan.known = true;
    dropGone();
    takeTiers(update.tiers);
    map?.updateAll();
  } else if (update.__typename === "SeatMapDelta") {
    for (const { seatId, status } of update.changes) {
      const number = plan?.number(seatId);
      if (number !== undefined) plan!.letters[number] = status[0] as Letter;
    }
    dropGone();
    map?.update(numbers(update.changes.map(({ seatId }) => seatId)));
    takeTiers(update.tierChanges.map(({ tierId, available }) => ({ id: tierId, available })));
    tell(update);
    salesChanged();
  }
  if (!$("state").hasAttribute("data-alarm") && !$("state").textContent?.startsWith("In line")) sayStatus();
}

/** What was picked and is not to be had any more is not picked any more. */
function dropGone() {
  if (!plan || !mayPick()) return;
  for (const seatId of [...picked]) {
    const number = plan.number(seatId);
    if (number === undefined || plan.letters[number] === "A") continue;
    picked.delete(seatId);
    map?.update([number]);
    map?.shake(number);
    say(`Somebody else was faster: ${seatId} is gone.`);
    changed();
  }
}

function takeTiers(tiers: { id: string; available: number }[]) {
  for (const { id, available } of tiers) {
    const index = event?.tiers.findIndex((tier) => tier.id === id) ?? -1;
    if (index < 0) continue;
    event!.tiers[index]!.available = available;
    const left = $("tiers").children[index]?.querySelector("span");
    if (left) left.textContent = ` of ${available} left`;
  }
}

/** The strip of what the server says, as it comes. */
function tell(update: Extract<Update, { __typename: "SeatMapDelta" }>) {
  const told = [...update.changes.map(({ seatId, status }) => `${seatId} ${status}`), ...update.tierChanges.map(({ available }) => `${available} left`)];
  const more = told.length > 12 ? `, and ${told.length - 12} more` : "";
  $("deltas").prepend(make("li", {}, `${Math.max(0, Date.now() - Date.parse(update.asOf))} ms: ${told.slice(0, 12).join(", ")}${more}`));
  while ($("deltas").childElementCount > 50) $("deltas").lastElementChild?.remove();
}

const salesChanged = selling(() => event?.id ?? null);
buying({
  event: () => event,
  redraw: (ids) => map?.update(numbers(ids)),
  shake: (id) => numbers([id]).forEach((number) => map?.shake(number)),
  say: state,
  redrawTiers: drawTiers,
});
$("sections").addEventListener("change", () => {
  const { value } = $<HTMLSelectElement>("sections");
  if (value === "") map?.camera.show(map.camera.whole); else map?.enter(Number(value));
});
$("nearer").addEventListener("click", () => map?.camera.zoom(1.6));
$("further").addEventListener("click", () => map?.camera.zoom(1 / 1.6));
$("whole").addEventListener("click", () => { if (map) { map.camera.show(map.camera.whole); $<HTMLSelectElement>("sections").value = ""; } });
$("second").addEventListener("click", () => window.open(location.href, "_blank", "noopener"));
finding((id) => { history.pushState(null, "", `?event=${id}`); void start(); });
addEventListener("popstate", () => void start());

async function start() {
  const id = new URLSearchParams(location.search).get("event") ?? settings.event;
  if (id) { try { await show(id); } catch { state("The event can't be shown now.", true); } }
}
void start();
