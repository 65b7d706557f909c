// The basket: what is picked, held, paid for and cancelled, each step told to the server under a key of its own.
import { $, ask, buyer, make, price, Refused } from "./api";
import type { BookingPartsFragment, EventQuery, HoldMutation } from "./gql/graphql";
import { BOOKING, CANCEL, CHECKOUT, HOLD, JOIN, MINE, RELEASE, STAND } from "./operations";

type Hold = NonNullable<NonNullable<HoldMutation["holdSeats"]>["hold"]>;
type Event = NonNullable<EventQuery["event"]>;
type Booking = BookingPartsFragment;

/** What the map does for the basket. */
export type Counter = {
  event: () => Event | null;
  /** These seats show something else. */
  redraw: (seatIds: Iterable<string>) => void;
  shake: (seatId: string) => void;
  say: (state: string) => void;
  redrawTiers: () => void;
};

export const picked = new Set<string>();
export const amounts = new Map<string, number>();
let hold: Hold | null = null;
// The map may show our own hold before its answer is here.
let holding = false;
// A payment that is on its way is not over when the clock is.
let paying = false;
let holdEnds = 0;
let key = crypto.randomUUID();
let payKey = crypto.randomUUID();

export const mine = (seatId: string) => picked.has(seatId) || (hold?.items.some((item) => item.seat?.seatId === seatId) ?? false);
export const open = () => hold === null && !holding;
export const say = (text: string) => { $("message").textContent = text; };

/** Another choice is another request. */
export function changed() {
  key = crypto.randomUUID();
  drawBasket();
}

/** Runs what a person asked for, and tells them what went wrong. */
function act(button: HTMLButtonElement, work: () => Promise<void>) {
  button.addEventListener("click", async () => {
    // Not disabled: whoever is there with the keyboard would lose their place.
    if (button.getAttribute("aria-disabled") === "true") return;
    button.setAttribute("aria-disabled", "true");
    say("");
    try { await work(); } catch (error) {
      say(error instanceof Refused ? error.message : "The server does not answer. Try again: the same key gives the same result.");
    }
    button.removeAttribute("aria-disabled");
    drawBasket();
  });
}

export function drawBasket() {
  const admissions = [...amounts].filter(([, amount]) => amount > 0);
  const named = (id: string) => counter?.event()?.tiers.find((tier) => tier.id === id)?.name;
  const names = hold
    ? hold.items.map((item) => item.seat?.seatId ?? `${item.quantity} × ${item.tier?.name}`)
    : [...picked, ...admissions.map(([id, amount]) => `${amount} × ${named(id)}`)];
  $("picked").textContent = names.length ? `${names.join(", ")}${hold ? `: ${price(hold.total)}` : ""}` : "Pick seats on the map.";
  $<HTMLButtonElement>("hold").hidden = hold !== null;
  $<HTMLButtonElement>("hold").disabled = !names.length || !buyer.token;
  $("pay").hidden = !hold;
}

/** Gives up what was picked and what the page knows of a hold. */
export function forget() {
  const seats = [...picked, ...(hold?.items ?? []).flatMap((item) => item.seat?.seatId ?? [])];
  hold = null;
  picked.clear();
  amounts.clear();
  counter?.redrawTiers();
  counter?.redraw(seats);
  changed();
}

/** Another event is looked at: what is held stays held, and is found again. */
export function leave() {
  forget();
  $("bookings").replaceChildren();
  say("");
}

/** Finds what this buyer has of an event already, after a reload or from another visit. */
export async function resume(event: string) {
  if (!buyer.token) return;
  const { holds, bookings } = await ask(MINE, { event });
  // Oldest first, so that the newest ends up on top.
  for (const booking of [...(bookings?.nodes ?? [])].reverse()) follow(booking);
  hold = holds?.nodes[0] ?? null;
  if (hold) begin(hold);
}

/** The clock of a hold begins. */
function begin(held: Hold) {
  holdEnds = performance.now() + 1000 * held.expiresInSeconds;
  payKey = crypto.randomUUID();
}

/** Waits in line where there is one. */
async function admission(event: Event): Promise<string | null> {
  if (!event.waitingRoomEnabled) return null;
  const joined = (await ask(JOIN, { id: event.id })).joinWaitingRoom;
  if (joined?.userErrors[0]) throw new Refused(joined.userErrors[0].message);
  let room = joined?.waitingRoom ?? null;
  while (room?.status === "WAITING") {
    const about = room.estimatedWaitSeconds == null ? "" : `, about ${room.estimatedWaitSeconds} s`;
    counter?.say(`In line: ${room.position}${about}.`);
    const pause = room.pollAfterMs;
    await new Promise((done) => setTimeout(done, pause));
    room = (await ask(STAND, { id: event.id })).waitingRoom ?? null;
  }
  if (room?.status === "SOLD_OUT") throw new Refused("Sold out.");
  counter?.say("Live.");
  return room?.admissionToken ?? null;
}

async function take(event: Event) {
  const admissions = [...amounts].filter(([, quantity]) => quantity > 0).map(([tierId, quantity]) => ({ tierId, quantity }));
  const input = { eventId: event.id, idempotencyKey: key, seatIds: [...picked], admissions, admissionToken: await admission(event) };
  holding = true;
  const answer = (await ask(HOLD, { input }).finally(() => { holding = false; })).holdSeats;
  const error = answer?.userErrors[0];
  if (!error) {
    hold = answer?.hold ?? null;
    if (hold) begin(hold);
    counter?.redraw(picked);
    drawBasket();
    $("checkout").focus();
    return;
  }
  key = crypto.randomUUID();
  if (!("conflicts" in error)) throw new Refused(error.message);
  for (const { seatId } of error.conflicts) {
    if (!seatId || !picked.delete(seatId)) continue;
    counter?.shake(seatId);
    counter?.redraw([seatId]);
  }
  const instead = error.alternativeSeatIds ?? [];
  if (!instead.length) throw new Refused(error.message);
  const before = [...picked];
  picked.clear();
  instead.forEach((id) => picked.add(id));
  counter?.redraw([...before, ...picked]);
  throw new Refused(`${error.message}. These are like them: ${instead.join(", ")}.`);
}

async function pay() {
  if (!hold) return;
  const method = $<HTMLSelectElement>("method").value;
  const input = { holdId: hold.id, idempotencyKey: `${payKey}-${method}`, paymentMethod: method, returnUrl: location.href };
  const answer = (await ask(CHECKOUT, { input })).checkout;
  if (answer?.userErrors[0]) { payKey = crypto.randomUUID(); throw new Refused(answer.userErrors[0].message); }
  if (answer?.booking) follow(answer.booking).focus();
  forget();
}

/** Shows a booking until it has come to rest. */
function follow(booking: Booking): HTMLElement {
  const article = make("article", { tabIndex: -1 });
  $("bookings").prepend(article);
  const cancel = make("button", { type: "button" }, "Cancel");
  const cancelKey = crypto.randomUUID();
  act(cancel, async () => {
    const answer = (await ask(CANCEL, { input: { bookingId: booking.id, idempotencyKey: cancelKey } })).cancel;
    if (answer?.userErrors[0]) throw new Refused(answer.userErrors[0].message);
    if (answer?.booking) { booking = answer.booking; draw(); void poll(); }
  });
  const draw = () => {
    const state = booking.status.toLowerCase().replaceAll("_", " ");
    const tickets = booking.tickets.map((ticket, index) =>
      make("img", { src: `data:image/svg+xml,${encodeURIComponent(ticket.qrSvg)}`, alt: `QR code of ticket ${index + 1}` }));
    cancel.hidden = booking.status !== "CONFIRMED";
    article.replaceChildren(make("h3", {}, `${booking.code}: ${state}, ${price(booking.total)}`), ...tickets, cancel);
  };
  const moving = () => ["PAYMENT_PENDING", "CANCELLING", "REFUND_REQUIRED"].includes(booking.status) || (booking.status === "CANCELLED" && Number(booking.total.amount) > 0) || (booking.status === "CONFIRMED" && !booking.tickets.length);
  const poll = async () => {
    for (let tries = 0; moving() && tries < 120; tries++) {
      await new Promise((done) => setTimeout(done, 500));
      // One that fails is followed by another.
      const read = (await ask(BOOKING, { id: booking.id }).catch(() => null))?.booking;
      if (read) { booking = read; draw(); }
    }
  };
  draw();
  void poll();
  return article;
}

let counter: Counter | null = null;

/** Makes the basket's buttons work. */
export function buying(at: Counter) {
  counter = at;
  act($("hold"), async () => { const event = at.event(); if (event) await take(event); });
  act($("release"), async () => { if (hold) await ask(RELEASE, { id: hold.id }); forget(); $("map")?.querySelector<HTMLElement>("[tabindex='0']")?.focus(); });
  act($("checkout"), async () => { paying = true; await pay().finally(() => { paying = false; }); });
  setInterval(() => {
    if (!hold || paying) return;
    const left = Math.max(0, Math.ceil((holdEnds - performance.now()) / 1000));
    $("left").textContent = `${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")}`;
    if (left === 0) { say("The hold ran out. Pick seats again."); forget(); }
  }, 250);
}
