// The box office for one buyer. Another tab is another buyer: watch them take each other's seats.
import { $, ask, buyer, make, price, settings, when } from "./api";
import { amounts, buying, changed, drawBasket, forget, mine, open as mayPick, picked, say } from "./buy";
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

$("who").textContent = buyer.token ? `You are ${buyer.name}.` : "Read only: this server gives out no tokens for trying things.";

const state = (text: string, alarm = false) => { $("state").textContent = text; $("state").toggleAttribute("data-alarm", alarm); };
const numbers = (ids: Iterable<string>) => [...ids].flatMap((id) => plan?.number(id) ?? []);

/** Shows an event: its words and its plan, and then whatever the stream brings. */
async function show(id: string) {
  stopWatching?.();
  map?.end();
  map = plan = null;
  forget();
  const asked = id;
  event = (await ask(EVENT, { id })).event ?? null;
  $("event").hidden = $("basket").hidden = !event;
  if (!event) return state("There is no such event.", true);
  $("title").textContent = event.title;
  $("place").textContent = `${event.venue.name}, ${event.venue.city}, ${when(event.startsAt, event.timeZone)}`;
  const loaded = event.layout ? await Plan.load(event.layout.geometryUrl) : null;
  if (event?.id !== asked) return;
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
  stopWatching = watch(event.id, {
    update: take,
    state: (live, asOf) => {
      const told = asOf ? ` What you see is of ${new Date(asOf).toLocaleTimeString()}.` : "";
      if (live) sayStatus(); else state(`Connection lost, reconnecting.${told}`, true);
    },
    failed: (message) => state(message, true),
  });
}

/** What a seat is to this buyer. */
function shownAt(number: number) {
  const seat = plan!.seats[number]!;
  return mine(seat.seatId) ? "M" : plan!.letters[number]!;
}

const words = { A: "available", H: "held", S: "sold", B: "not for sale", M: "yours" };

function describe(number: number): string {
  const seat = plan!.seats[number]!;
  const zone = event?.priceZones.find((one) => one.name === seat.zone);
  const parts = [`row ${seat.row}`, `seat ${seat.number}`, zone && price(zone.price), seat.accessible && "wheelchair", words[shownAt(number)]];
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
    takeTiers(update.tiers);
    map?.updateAll();
  } else if (update.__typename === "SeatMapDelta") {
    for (const { seatId, status } of update.changes) {
      const number = plan?.number(seatId);
      if (number !== undefined) plan!.letters[number] = status[0] as Letter;
      if (picked.has(seatId) && status !== "AVAILABLE" && mayPick()) {
        picked.delete(seatId);
        if (number !== undefined) map?.shake(number);
        say(`Somebody else was faster: ${seatId} is gone.`);
        changed();
      }
    }
    map?.update(numbers(update.changes.map(({ seatId }) => seatId)));
    takeTiers(update.tierChanges.map(({ tierId, available }) => ({ id: tierId, available })));
    tell(update);
    salesChanged();
  }
  if (!$("state").hasAttribute("data-alarm") && !$("state").textContent?.startsWith("In line")) sayStatus();
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
