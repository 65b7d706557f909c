// The box office for one buyer. Another tab is another buyer: watch them take each other's seats.
import { createClient } from "graphql-ws";

type Seat = { seatId: string; row: string; number: string; x: number; y: number; zone: string; accessible: boolean };
type Section = { name: string; seats: Seat[] };
type Money = { amount: string; currency: string };
type UserError = { code: string; message: string; conflicts?: { seatId: string | null }[]; alternativeSeatIds?: string[] | null };
type Hold = { id: string; expiresInSeconds: number; total: Money; items: { quantity: number; seat: { seatId: string } | null; tier: { name: string } | null }[] };
type Booking = { id: string; code: string; status: string; total: Money; tickets: { id: string; qrSvg: string }[]; payment: { status: string; nextAction: { redirectUrl: string | null } | null } | null };
type EventInfo = {
  id: string; title: string; saleStatus: string; startsAt: string; timeZone: string; waitingRoomEnabled: boolean;
  venue: { name: string; city: string }; priceZones: { name: string; price: Money }[];
  tiers: { id: string; name: string; price: Money; available: number }[]; layout: { geometryUrl: string } | null;
};

const $ = <T extends Element = HTMLElement>(id: string) => document.getElementById(id) as unknown as T;
const settings = JSON.parse($("settings").textContent ?? "{}");
const stored = sessionStorage.getItem("buyer");
// A tab keeps its buyer over a reload; a new tab is somebody else.
const buyer: { name: string; token: string | null } = stored ? JSON.parse(stored) : { name: settings.name ?? "nobody", token: settings.token ?? null };
if (buyer.token) sessionStorage.setItem("buyer", JSON.stringify(buyer));
$("who").textContent = buyer.token ? `You are ${buyer.name}.` : "Read only: this server gives out no tokens for trying things.";

const SECTION_SEATS = 2500;
let event: EventInfo | null = null;
let sections: Section[] = [];
let shown = 0;
let letters = new Map<string, string>();
const picked = new Set<string>();
const amounts = new Map<string, number>();
let hold: Hold | null = null;
// The map may show our own hold before its answer is here.
let holding = false;
let holdEnds = 0;
let key = crypto.randomUUID();
let payKey = crypto.randomUUID();
let stopWatching: (() => void) | null = null;

class Refused extends Error {}

async function ask<T>(query: string, variables: object = {}): Promise<T> {
  const headers: Record<string, string> = { "content-type": "application/json", accept: "application/graphql-response+json" };
  if (buyer.token) headers.authorization = `Bearer ${buyer.token}`;
  const response = await fetch("/graphql", { method: "POST", headers, body: JSON.stringify({ query, variables }) });
  const answer = await response.json();
  if (answer.errors) {
    const error = answer.errors[0];
    if (error.extensions?.code === "UNAUTHENTICATED") sessionStorage.removeItem("buyer");
    throw new Refused(error.message);
  }
  return answer.data;
}

const say = (text: string) => { $("message").textContent = text; };
const state = (text: string, alarm = false) => { $("state").textContent = text; $("state").toggleAttribute("data-alarm", alarm); };
const price = (money: Money) => new Intl.NumberFormat(undefined, { style: "currency", currency: money.currency }).format(Number(money.amount));
const when = (at: string, timeZone: string) => new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short", timeZone }).format(new Date(at));

/** Runs what a person asked for, and tells them what went wrong. */
function act(button: HTMLButtonElement, work: () => Promise<void>) {
  button.addEventListener("click", async () => {
    button.disabled = true;
    say("");
    try { await work(); } catch (error) {
      say(error instanceof Refused ? error.message : "The server does not answer. Try again: the same key gives the same result.");
    }
    button.disabled = false;
    drawBasket();
  });
}

// ---- finding ----
let asked = 0;
async function search() {
  const turn = ++asked;
  const query = `query ($query: String) { searchEvents(query: $query, first: 30) { totalCount nodes {
    id title startsAt timeZone saleStatus venue { name city } priceRange { min { amount currency } } } } }`;
  try {
    const found = await ask<{ searchEvents: { totalCount: number; nodes: (EventInfo & { priceRange: { min: Money } | null })[] } }>(query, { query: $<HTMLInputElement>("query").value || null });
    if (turn !== asked) return;
    $("found").textContent = `${found.searchEvents.totalCount} events`;
    $("events").replaceChildren(...found.searchEvents.nodes.map((node) => {
      const item = document.createElement("li");
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = node.title;
      const small = document.createElement("small");
      const from = node.priceRange ? `, from ${price(node.priceRange.min)}` : "";
      small.textContent = `${when(node.startsAt, node.timeZone)}, ${node.venue.name}, ${node.venue.city}${from}`;
      button.append(small);
      button.addEventListener("click", () => { history.pushState(null, "", `?event=${node.id}`); void open(node.id); });
      item.append(button);
      return item;
    }));
  } catch (error) { if (turn === asked) $("found").textContent = error instanceof Refused ? error.message : "The server does not answer."; }
}

// ---- the event ----
async function open(id: string) {
  stopWatching?.();
  picked.clear();
  amounts.clear();
  hold = null;
  key = crypto.randomUUID();
  const query = `query ($id: ID) { event(id: $id) { id title saleStatus startsAt timeZone waitingRoomEnabled venue { name city }
    priceZones { name price { amount currency } } tiers { id name price { amount currency } available } layout { geometryUrl } } }`;
  const read = await ask<{ event: EventInfo | null }>(query, { id });
  event = read.event;
  $("event").hidden = $("basket").hidden = !event;
  if (!event) return;
  $("title").textContent = event.title;
  $("place").textContent = `${event.venue.name}, ${event.venue.city}, ${when(event.startsAt, event.timeZone)}`;
  sections = event.layout ? (await (await fetch(event.layout.geometryUrl)).json()).sections : [];
  letters = new Map();
  const count = sections.reduce((sum, section) => sum + section.seats.length, 0);
  const select = $<HTMLSelectElement>("sections");
  $("sections-label").hidden = count <= SECTION_SEATS;
  select.replaceChildren(...sections.map((section, index) => new Option(section.name, String(index))));
  shown = 0;
  for (const element of ["map", "legend"]) $(element).toggleAttribute("hidden", sections.length === 0);
  drawTiers();
  watch(event.id);
  drawMap();
  drawBasket();
}

const all = () => sections.reduce((sum, section) => sum + section.seats.length, 0) <= SECTION_SEATS;
const visible = () => (all() ? sections.flatMap((section) => section.seats) : sections[shown]?.seats ?? []);

function drawMap() {
  const map = $<SVGSVGElement>("map");
  const seats = visible();
  if (!seats.length) return map.replaceChildren();
  const rows = new Map<string, Seat[]>();
  for (const seat of seats) rows.set(seat.row, [...(rows.get(seat.row) ?? []), seat]);
  // Units differ from plan to plan: the usual distance of neighbours becomes twelve.
  const gaps = [...rows.values()].flatMap((row) => row.slice(1).map((seat, i) => Math.hypot(seat.x - row[i].x, seat.y - row[i].y))).filter((gap) => gap > 0).sort((a, b) => a - b);
  const unit = 12 / (gaps[Math.floor(gaps.length / 2)] || 1);
  const xs = seats.map((seat) => seat.x * unit), ys = seats.map((seat) => seat.y * unit);
  const [left, top] = [Math.min(...xs), Math.min(...ys)];
  map.setAttribute("viewBox", `${left - 12} ${top - 12} ${Math.max(...xs) - left + 24} ${Math.max(...ys) - top + 24}`);
  map.replaceChildren(...seats.map((seat, index) => {
    const group = document.createElementNS("http://www.w3.org/2000/svg", "g");
    group.setAttribute("transform", `translate(${seat.x * unit} ${seat.y * unit})`);
    group.dataset.seat = seat.seatId;
    group.setAttribute("role", "button");
    group.setAttribute("tabindex", index === 0 ? "0" : "-1");
    group.append(document.createElementNS("http://www.w3.org/2000/svg", "use"));
    return group;
  }));
  for (const seat of seats) drawSeat(seat.seatId);
}

const words: Record<string, string> = { A: "available", H: "held", S: "sold", B: "not for sale" };
let bySeat = new Map<string, Seat>();

function drawSeat(id: string) {
  const group = $("map").querySelector<SVGGElement>(`[data-seat="${CSS.escape(id)}"]`);
  const seat = bySeat.get(id) ?? sections.flatMap((section) => section.seats).find((one) => one.seatId === id);
  if (!group || !seat) return;
  bySeat.set(id, seat);
  const letter = letters.get(id) ?? "B";
  const mine = picked.has(id) || hold?.items.some((item) => item.seat?.seatId === id);
  group.dataset.letter = letter;
  group.toggleAttribute("data-mine", Boolean(mine));
  group.querySelector("use")?.setAttribute("href", `#s-${mine ? "M" : letter}`);
  const zone = event?.priceZones.find((one) => one.name === seat.zone);
  group.setAttribute("aria-pressed", String(Boolean(mine)));
  group.setAttribute("aria-label", `row ${seat.row}, seat ${seat.number}, ${zone ? price(zone.price) : ""}${seat.accessible ? ", wheelchair" : ""}, ${mine ? "yours" : words[letter]}`);
}

function toggle(id: string) {
  if (hold || letters.get(id) !== "A") return;
  if (!picked.delete(id)) picked.add(id);
  key = crypto.randomUUID();
  drawSeat(id);
  drawBasket();
}

$("map").addEventListener("click", (click) => {
  const id = (click.target as Element).closest<SVGGElement>("[data-seat]")?.dataset.seat;
  if (id) toggle(id);
});
$("map").addEventListener("keydown", (press) => {
  const { key: pressed } = press as unknown as KeyboardEvent;
  const group = (press.target as Element).closest<SVGGElement>("[data-seat]");
  const here = group && bySeat.get(group.dataset.seat ?? "");
  if (!group || !here) return;
  if (pressed === " " || pressed === "Enter") { press.preventDefault(); return toggle(here.seatId); }
  const [dx, dy] = ({ ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] } as Record<string, number[]>)[pressed] ?? [0, 0];
  if (!dx && !dy) return;
  press.preventDefault();
  let best: Seat | null = null, nearest = Infinity;
  for (const seat of visible()) {
    const along = (seat.x - here.x) * dx + (seat.y - here.y) * dy, aside = Math.abs((seat.x - here.x) * dy) + Math.abs((seat.y - here.y) * dx);
    if (along > 0 && along + 3 * aside < nearest) { best = seat; nearest = along + 3 * aside; }
  }
  const next = best && $("map").querySelector<SVGGElement>(`[data-seat="${CSS.escape(best.seatId)}"]`);
  if (next) { group.setAttribute("tabindex", "-1"); next.setAttribute("tabindex", "0"); next.focus(); }
});
$("sections").addEventListener("change", () => { shown = Number($<HTMLSelectElement>("sections").value); drawMap(); });

function drawTiers() {
  $("tiers").replaceChildren(...(event?.tiers ?? []).map((tier) => {
    const label = document.createElement("label");
    const input = document.createElement("input");
    Object.assign(input, { type: "number", min: "0", max: "20", value: String(amounts.get(tier.id) ?? 0) });
    input.addEventListener("input", () => { amounts.set(tier.id, Math.max(0, Math.trunc(input.valueAsNumber || 0))); key = crypto.randomUUID(); drawBasket(); });
    const left = document.createElement("span");
    left.dataset.tier = tier.id;
    left.textContent = ` of ${tier.available} left`;
    label.append(`${tier.name}, ${price(tier.price)} `, input, left);
    return label;
  }));
}

// ---- live ----
type Change = { seatId: string; status: string };
type Update =
  | { __typename: "SeatMapSnapshot"; version: string; asOf: string; sections: { name: string; statuses: string }[] }
  | { __typename: "SeatMapDelta"; version: string; asOf: string; changes: Change[]; tierChanges: { tierId: string; available: number }[] }
  | { __typename: "SeatMapResync"; version: string; reason: string };

function watch(id: string) {
  const url = new URL("/graphql", location.href);
  url.protocol = url.protocol.replace("http", "ws");
  let version: string | null = null;
  const client = createClient({
    url: url.href,
    connectionParams: buyer.token ? { authorization: `Bearer ${buyer.token}` } : {},
    retryAttempts: Infinity,
    retryWait: async (retries) => new Promise((done) => setTimeout(done, Math.min(500 * 2 ** retries, 8000) * (0.5 + Math.random()))),
    shouldRetry: () => true,
    on: {
      closed: () => state("Connection lost, reconnecting. What you see may be out of date.", true),
      connected: () => state("Live."),
    },
  });
  const query = `subscription ($id: ID!, $after: SeatMapVersion) { seatMapChanged(eventId: $id, afterVersion: $after) { __typename
    ... on SeatMapSnapshot { version asOf sections { name statuses } }
    ... on SeatMapDelta { version asOf changes { seatId status } tierChanges { tierId available } } ... on SeatMapResync { version reason } } }`;
  const take = (update: Update) => {
    if (update.__typename === "SeatMapSnapshot") {
      for (const section of update.sections) {
        const seats = sections.find((one) => one.name === section.name)?.seats ?? [];
        seats.forEach((seat, index) => letters.set(seat.seatId, section.statuses[index]));
      }
      visible().forEach((seat) => drawSeat(seat.seatId));
    } else if (update.__typename === "SeatMapDelta") {
      for (const change of update.changes) {
        letters.set(change.seatId, change.status[0]);
        if (picked.has(change.seatId) && change.status !== "AVAILABLE" && !hold && !holding) {
          picked.delete(change.seatId);
          shake(change.seatId);
          say(`Somebody else was faster: ${change.seatId} is gone.`);
          drawBasket();
        }
        drawSeat(change.seatId);
      }
      for (const change of update.tierChanges) {
        const left = $("tiers").querySelector(`[data-tier="${CSS.escape(change.tierId)}"]`);
        if (left) left.textContent = ` of ${change.available} left`;
      }
      const line = document.createElement("li");
      const told = [...update.changes.map((change) => `${change.seatId} ${change.status}`), ...update.tierChanges.map((change) => `${change.available} left`)];
      line.textContent = `${Math.max(0, Date.now() - Date.parse(update.asOf))} ms: ${told.join(", ")}`;
      $("deltas").prepend(line);
      while ($("deltas").childElementCount > 50) $("deltas").lastElementChild?.remove();
    }
    version = update.version;
  };
  let stopped = false;
  const begin = () => {
    if (stopped) return;
    client.subscribe<{ seatMapChanged: Update }>({ query, variables: { id, after: version } }, {
      next: ({ data, errors }) => { if (data) take(data.seatMapChanged); else if (errors) state(errors[0].message, true); },
      error: () => setTimeout(begin, 2000),
      complete: () => setTimeout(begin, 500),
    });
  };
  begin();
  stopWatching = () => { stopped = true; void client.dispose(); };
}

function shake(id: string) {
  const group = $("map").querySelector(`[data-seat="${CSS.escape(id)}"]`);
  group?.classList.add("shaken");
  setTimeout(() => group?.classList.remove("shaken"), 500);
}

// ---- basket, money, tickets ----
const HOLD = "id expiresInSeconds total { amount currency } items { quantity seat { seatId } tier { name } }";
const BOOKING = "id code status total { amount currency } tickets { id qrSvg } payment { status nextAction { redirectUrl } }";

function drawBasket() {
  const admissions = [...amounts].filter(([, amount]) => amount > 0);
  const names = hold
    ? hold.items.map((item) => item.seat?.seatId ?? `${item.quantity} × ${item.tier?.name}`)
    : [...picked, ...admissions.map(([id, amount]) => `${amount} × ${event?.tiers.find((tier) => tier.id === id)?.name}`)];
  $("picked").textContent = names.length ? `${names.join(", ")}${hold ? `: ${price(hold.total)}` : ""}` : "Pick seats on the map.";
  $<HTMLButtonElement>("hold").hidden = Boolean(hold);
  $<HTMLButtonElement>("hold").disabled = !names.length || !buyer.token;
  $("pay").hidden = !hold;
}

setInterval(() => {
  if (!hold) return;
  const left = Math.max(0, Math.ceil((holdEnds - performance.now()) / 1000));
  $("left").textContent = `${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")}`;
  if (left === 0) { say("The hold ran out. Pick seats again."); forget(); }
}, 250);

function forget() {
  const seats = [...picked, ...(hold?.items ?? []).flatMap((item) => item.seat?.seatId ?? [])];
  hold = null;
  picked.clear();
  amounts.clear();
  key = crypto.randomUUID();
  drawTiers();
  seats.forEach(drawSeat);
  drawBasket();
}

/** Waits in line where there is one. */
async function admission(): Promise<string | null> {
  if (!event?.waitingRoomEnabled) return null;
  type Room = { status: string; position: number | null; estimatedWaitSeconds: number | null; admissionToken: string | null; pollAfterMs: number };
  const fields = "status position estimatedWaitSeconds admissionToken pollAfterMs";
  let room: Room | null = (await ask<{ joinWaitingRoom: { waitingRoom: Room } }>(`mutation ($id: ID!) { joinWaitingRoom(input: { eventId: $id }) { waitingRoom { ${fields} } } }`, { id: event.id })).joinWaitingRoom.waitingRoom;
  while (room?.status === "WAITING") {
    state(`In line: ${room.position}${room.estimatedWaitSeconds === null ? "" : `, about ${room.estimatedWaitSeconds} s`}.`);
    await new Promise((done) => setTimeout(done, room?.pollAfterMs));
    room = (await ask<{ waitingRoom: Room | null }>(`query ($id: ID!) { waitingRoom(eventId: $id) { ${fields} } }`, { id: event.id })).waitingRoom;
  }
  if (room?.status === "SOLD_OUT") throw new Refused("Sold out.");
  state("Live.");
  return room?.admissionToken ?? null;
}

act($("hold"), async () => {
  if (!event) return;
  const admissions = [...amounts].filter(([, quantity]) => quantity > 0).map(([tierId, quantity]) => ({ tierId, quantity }));
  const input = { eventId: event.id, idempotencyKey: key, seatIds: [...picked], admissions, admissionToken: await admission() };
  holding = true;
  const answer = await ask<{ holdSeats: { hold: Hold | null; userErrors: UserError[] } }>(
    `mutation ($input: HoldSeatsInput!) { holdSeats(input: $input) { hold { ${HOLD} } userErrors { code message
      ... on SeatsUnavailableError { conflicts { seatId } alternativeSeatIds } } } }`, { input }).finally(() => { holding = false; });
  const [error] = answer.holdSeats.userErrors;
  if (error) {
    for (const conflict of error.conflicts ?? []) if (conflict.seatId) { picked.delete(conflict.seatId); shake(conflict.seatId); drawSeat(conflict.seatId); }
    key = crypto.randomUUID();
    if (error.alternativeSeatIds?.length) {
      const before = [...picked];
      picked.clear();
      error.alternativeSeatIds.forEach((id) => picked.add(id));
      [...before, ...picked].forEach(drawSeat);
      throw new Refused(`${error.message}. These are like them: ${error.alternativeSeatIds.join(", ")}.`);
    }
    throw new Refused(error.message);
  }
  hold = answer.holdSeats.hold;
  holdEnds = performance.now() + 1000 * (hold?.expiresInSeconds ?? 0);
  payKey = crypto.randomUUID();
  picked.forEach(drawSeat);
});

act($("release"), async () => {
  await ask("mutation ($id: ID!) { releaseHold(input: { holdId: $id }) { userErrors { code } } }", { id: hold?.id });
  forget();
});

act($("checkout"), async () => {
  const method = $<HTMLSelectElement>("method");
  const input = { holdId: hold?.id, idempotencyKey: `${payKey}-${method.value}`, paymentMethod: method.value, returnUrl: location.href };
  const answer = await ask<{ checkout: { booking: Booking | null; userErrors: UserError[] } }>(
    `mutation ($input: CheckoutInput!) { checkout(input: $input) { booking { ${BOOKING} } userErrors { code message } } }`, { input });
  const [error] = answer.checkout.userErrors;
  if (error) { payKey = crypto.randomUUID(); throw new Refused(error.message); }
  if (answer.checkout.booking) follow(answer.checkout.booking);
  forget();
});

/** Shows a booking until it has come to rest. */
function follow(booking: Booking) {
  const article = document.createElement("article");
  $("bookings").prepend(article);
  const draw = () => {
    const title = document.createElement("h3");
    title.textContent = `${booking.code}: ${booking.status.toLowerCase().replaceAll("_", " ")}, ${price(booking.total)}`;
    const tickets = booking.tickets.map((ticket, index) => {
      const image = new Image();
      image.src = `data:image/svg+xml,${encodeURIComponent(ticket.qrSvg)}`;
      image.alt = `QR code of ticket ${index + 1}`;
      return image;
    });
    const cancel = document.createElement("button");
    cancel.type = "button";
    cancel.textContent = "Cancel";
    cancel.hidden = booking.status !== "CONFIRMED";
    const cancelKey = crypto.randomUUID();
    act(cancel, async () => {
      const answer = await ask<{ cancel: { booking: Booking | null; userErrors: UserError[] } }>(
        `mutation ($input: CancelInput!) { cancel(input: $input) { booking { ${BOOKING} } userErrors { code message } } }`,
        { input: { bookingId: booking.id, idempotencyKey: cancelKey } });
      if (answer.cancel.userErrors[0]) throw new Refused(answer.cancel.userErrors[0].message);
      if (answer.cancel.booking) { booking = answer.cancel.booking; draw(); void poll(); }
    });
    article.replaceChildren(title, ...tickets, cancel);
  };
  const moving = () => ["PAYMENT_PENDING", "CANCELLING", "CANCELLED", "REFUND_REQUIRED"].includes(booking.status) || (booking.status === "CONFIRMED" && !booking.tickets.length);
  const poll = async () => {
    for (let tries = 0; moving() && tries < 120; tries++) {
      await new Promise((done) => setTimeout(done, 500));
      try {
        const read = await ask<{ booking: Booking | null }>(`query ($id: ID) { booking(id: $id) { ${BOOKING} } }`, { id: booking.id });
        if (read.booking) { booking = read.booking; draw(); }
      } catch { /* the next turn asks again */ }
    }
  };
  draw();
  void poll();
}

$("second").addEventListener("click", () => window.open(location.href, "_blank", "noopener"));
$("search").addEventListener("submit", (submit) => { submit.preventDefault(); void search(); });
let typing = 0;
$("query").addEventListener("input", () => { clearTimeout(typing); typing = window.setTimeout(search, 150); });
addEventListener("popstate", () => void start());

async function start() {
  const id = new URLSearchParams(location.search).get("event") ?? settings.event;
  if (id) { try { await open(id); } catch { state("The event can't be shown now.", true); } }
}
void search();
void start();
