// A plan with its seats as people see, touch and hear them: as SVG, or on a canvas where there are too many.
import { make, svg } from "./api";
import { Camera } from "./camera";
import { type Box, GAP, type Plan, type Section } from "./plan";

/** What a seat is to this buyer: theirs, or what everybody sees. */
export type Shown = "A" | "H" | "S" | "B" | "M";
export type Host = {
  shown: (seat: number) => Shown;
  describe: (seat: number) => string;
  pick: (seat: number) => void;
  /** Another section is looked at. */
  entered: (section: number) => void;
};

/** Beyond so many seats a canvas draws them, and only one section's seats are elements. */
const SVG_SEATS_MAX = 5000;

export interface SeatMap {
  readonly element: HTMLElement | SVGElement;
  readonly camera: Camera;
  /** Seats show something else. */
  update(seats: Iterable<number>): void;
  /** Everything may show something else. */
  updateAll(): void;
  shake(seat: number): void;
  /** Looks at a section. */
  enter(section: number): void;
  end(): void;
}

export const seatMap = (plan: Plan, host: Host): SeatMap =>
  plan.seats.length > SVG_SEATS_MAX ? new CanvasMap(plan, host) : new SvgMap(plan, host);

/** What all seat elements say, whether they are seen or only heard. */
function describe(element: Element, seat: number, host: Host) {
  const shown = host.shown(seat);
  element.setAttribute("data-letter", shown);
  element.setAttribute("aria-pressed", String(shown === "M"));
  element.setAttribute("aria-disabled", String(shown !== "A" && shown !== "M"));
  element.setAttribute("aria-label", host.describe(seat));
}

/** Arrow keys move, space and return pick. One seat is in the tab order. */
function keys(element: Element, plan: Plan, host: Host, among: () => Section[], seats: Map<number, Element>, reached: (seat: number) => void) {
  const number = (event: Event) => {
    const seat = (event.target as Element).closest("[data-seat]")?.getAttribute("data-seat");
    return seat ? plan.number(seat) : undefined;
  };
  element.addEventListener("keydown", (event) => {
    const { key } = event as KeyboardEvent;
    const here = number(event);
    if (here === undefined) return;
    if (key === " " || key === "Enter") { event.preventDefault(); return host.pick(here); }
    const [dx, dy] = ({ ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] } as Record<string, [number, number]>)[key] ?? [0, 0];
    if (!dx && !dy) return;
    event.preventDefault();
    const next = plan.towards(here, dx, dy, among());
    const to = next === null ? undefined : seats.get(next);
    if (!to) return;
    seats.get(here)?.setAttribute("tabindex", "-1");
    to.setAttribute("tabindex", "0");
    (to as HTMLElement).focus({ preventScroll: true });
  });
  element.addEventListener("focusin", (event) => {
    const seat = number(event);
    if (seat !== undefined) reached(seat);
  });
}

class SvgMap implements SeatMap {
  readonly element: SVGSVGElement;
  readonly camera: Camera;
  readonly #seats = new Map<number, SVGGElement>();
  readonly #shown = new Map<number, Shown>();

  constructor(readonly plan: Plan, readonly host: Host) {
    this.element = svg("svg", { id: "map", role: "group", "aria-label": "Seat map; arrow keys move, space picks" });
    plan.seats.forEach((seat, number) => {
      const group = svg("g", {
        transform: `translate(${seat.x} ${seat.y})`, "data-seat": seat.seatId, role: "button", tabindex: number === 0 ? 0 : -1,
      }, svg("use"));
      this.#seats.set(number, group);
    });
    this.element.append(...this.#seats.values());
    this.camera = new Camera(this.element, plan.box, () => {
      const { x, y, w, h } = this.camera.view;
      this.element.setAttribute("viewBox", `${x} ${y} ${w} ${h}`);
    });
    this.element.style.aspectRatio = `${plan.box.w} / ${plan.box.h}`;
    this.camera.show(plan.box);
    this.element.addEventListener("click", (click) => {
      const id = (click.target as Element).closest<SVGGElement>("[data-seat]")?.dataset.seat;
      const seat = id === undefined ? undefined : plan.number(id);
      if (seat !== undefined && !this.camera.dragged) host.pick(seat);
    });
    keys(this.element, plan, host, () => plan.sections, this.#seats, (seat) => {
      const { x, y } = plan.seats[seat]!;
      if (this.camera.view.w < plan.box.w) this.camera.reveal(x, y);
    });
    this.updateAll();
  }

  update(seats: Iterable<number>) {
    for (const seat of seats) {
      const group = this.#seats.get(seat);
      const shown = this.host.shown(seat);
      // What is picked becomes what is held, and looks the same.
      if (!group || (this.#shown.get(seat) === shown && shown !== "M")) continue;
      this.#shown.set(seat, shown);
      group.firstElementChild?.setAttribute("href", `#s-${shown}`);
      describe(group, seat, this.host);
    }
  }

  updateAll() {
    this.update(this.#seats.keys());
  }

  shake(seat: number) {
    const group = this.#seats.get(seat);
    group?.classList.add("shaken");
    setTimeout(() => group?.classList.remove("shaken"), 500);
  }

  enter(section: number) {
    const box = this.plan.sections[section]?.box;
    if (box) this.camera.show(box);
  }

  end() {}
}

/** Pixels between neighbours from which seats are drawn at all, and from which they have shapes. */
const DOTS_FROM = 2.5, SHAPES_FROM = 10;
const COLOURS: Record<Shown, string> = { A: "free", H: "held", S: "gone", B: "gone", M: "mine" };
/** Half the side of a dot: what can be had stands out by its size too. */
const DOT: Record<Shown, number> = { A: 4.5, H: 3, S: 1.5, B: 1.5, M: 4.5 };
const SHAKE_MS = 500;

class CanvasMap implements SeatMap {
  readonly element: HTMLCanvasElement;
  readonly camera: Camera;
  readonly #context: CanvasRenderingContext2D;
  readonly #layer = document.createElement("canvas");
  readonly #seats = new Map<number, HTMLButtonElement>();
  readonly #free: number[];
  readonly #shaken = new Map<number, number>();
  readonly #watched: ResizeObserver;
  readonly #scheme = matchMedia("(prefers-color-scheme: dark)");
  #section = -1;
  #focused = -1;
  #due = false;
  #colours: Record<string, string> = {};

  constructor(readonly plan: Plan, readonly host: Host) {
    this.element = make("canvas", { id: "map" });
    this.element.setAttribute("role", "group");
    this.element.setAttribute("aria-label", "Seat map. Choose a section; arrow keys move among its seats, space picks");
    this.#context = this.element.getContext("2d")!;
    this.#free = plan.sections.map((section) => plan.free(section));
    this.camera = new Camera(this.element, plan.box, () => this.#soon());
    this.element.style.aspectRatio = `${plan.box.w} / ${plan.box.h}`;
    this.camera.show(plan.box);
    this.element.addEventListener("click", (click) => {
      // What a button inside of it is told by the keyboard has no place.
      if (click.target === this.element && !this.camera.dragged) this.#touch(...this.camera.at(click.clientX, click.clientY));
    });
    keys(this.element, plan, host, () => (this.#section < 0 ? [] : [plan.sections[this.#section]!]), this.#seats, (seat) => {
      this.#focused = seat;
      const { x, y } = plan.seats[seat]!;
      this.camera.reveal(x, y);
    });
    this.element.addEventListener("focusout", () => { this.#focused = -1; this.#soon(); });
    this.#watched = new ResizeObserver(() => this.#soon());
    this.#watched.observe(this.element);
    this.#scheme.onchange = () => { this.#colours = {}; this.#soon(); };
    // Where there is one section only, there is nothing to choose first.
    if (plan.sections.length === 1) this.enter(0);
  }

  update(seats: Iterable<number>) {
    const sections = new Set<number>();
    for (const seat of seats) {
      sections.add(this.plan.seats[seat]!.section);
      const button = this.#seats.get(seat);
      if (button) describe(button, seat, this.host);
    }
    for (const section of sections) this.#free[section] = this.plan.free(this.plan.sections[section]!);
    this.#soon();
  }

  updateAll() {
    this.plan.sections.forEach((section, number) => { this.#free[number] = this.plan.free(section); });
    for (const [seat, button] of this.#seats) describe(button, seat, this.host);
    this.#soon();
  }

  shake(seat: number) {
    this.#shaken.set(seat, performance.now());
    this.#soon();
  }

  /** Looks at a section, whose seats become elements for keyboards and for readers. */
  enter(number: number) {
    const section = this.plan.sections[number];
    if (!section) return;
    this.camera.show(section.box);
    if (number === this.#section) return;
    this.#section = number;
    this.#seats.clear();
    for (let seat = section.first; seat < section.end; seat++) {
      const button = make("button", { type: "button", tabIndex: seat === section.first ? 0 : -1 });
      button.dataset.seat = this.plan.seats[seat]!.seatId;
      describe(button, seat, this.host);
      this.#seats.set(seat, button);
    }
    this.element.replaceChildren(...this.#seats.values());
    this.host.entered(number);
  }

  end() {
    this.#watched.disconnect();
    this.#scheme.onchange = null;
  }

  #touch(x: number, y: number) {
    if (GAP * this.camera.scale.scale >= DOTS_FROM * 2) {
      const seat = this.plan.at(x, y);
      if (seat === null) return;
      if (this.plan.seats[seat]!.section !== this.#section) this.#adopt(this.plan.seats[seat]!.section);
      return this.host.pick(seat);
    }
    const near = ({ x: left, y: top, w, h }: Box) => x >= left && y >= top && x <= left + w && y <= top + h;
    const section = this.plan.sections.findIndex(({ box, hull }) => near(box) && inside(hull, x, y));
    if (section >= 0) this.enter(section);
  }

  /** Its seats become elements, and the view stays. */
  #adopt(section: number) {
    const { view } = this.camera;
    this.enter(section);
    this.camera.show(view);
  }

  #soon() {
    if (this.#due) return;
    this.#due = true;
    requestAnimationFrame(() => { this.#due = false; this.#draw(); });
  }

  /** A colour of the style sheet, as it is in this scheme. */
  #colour(name: string): string {
    const known = this.#colours[name];
    if (known) return known;
    this.element.style.color = `var(--${name})`;
    return (this.#colours[name] = getComputedStyle(this.element).color);
  }

  /** The same as a pixel: the bytes red, green, blue, alpha. */
  #pixel(name: string): number {
    const [red = 0, green = 0, blue = 0] = (this.#colour(name).match(/[\d.]+/g) ?? []).map(Number);
    return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
  }

  #draw() {
    const { element } = this, context = this.#context;
    const { width, height } = element.getBoundingClientRect();
    const ratio = devicePixelRatio;
    if (element.width !== Math.round(width * ratio) || element.height !== Math.round(height * ratio)) {
      element.width = Math.round(width * ratio);
      element.height = Math.round(height * ratio);
    }
    const { scale, left, top } = this.camera.scale;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    context.setTransform(scale * ratio, 0, 0, scale * ratio, left * ratio, top * ratio);
    const seen: Box = { x: -left / scale, y: -top / scale, w: width / scale, h: height / scale };
    const gap = GAP * scale;
    const visible = this.plan.sections.map((section, number) => ({ section, number })).filter(({ section }) => overlap(section.box, seen));
    for (const { section, number } of visible) this.#drawSection(section, number, gap);
    if (gap >= DOTS_FROM) this.#drawSeats(visible.map(({ section }) => section), seen, gap);
    if (gap < SHAPES_FROM) for (const { section, number } of visible) this.#label(section, number, scale);
    this.#drawMoving();
  }

  #drawSection({ hull, first, end }: Section, number: number, gap: number) {
    const context = this.#context;
    context.beginPath();
    hull.forEach(([x, y], i) => (i ? context.lineTo(x, y) : context.moveTo(x, y)));
    context.closePath();
    context.lineJoin = "round";
    context.lineWidth = GAP;
    context.strokeStyle = context.fillStyle = this.#colour("line");
    context.globalAlpha = gap < DOTS_FROM ? 1 : 0.25;
    context.stroke();
    context.fill();
    if (gap < DOTS_FROM && this.plan.known) {
      context.globalAlpha = 0.15 + 0.75 * (this.#free[number]! / Math.max(1, end - first));
      context.fillStyle = this.#colour("free");
      context.fill();
    }
    context.globalAlpha = 1;
  }

  #label({ name, box, first, end }: Section, number: number, scale: number) {
    const size = 12 / scale, text = this.plan.known ? `${name}: ${this.#free[number]}` : name;
    const context = this.#context;
    context.font = `${size}px system-ui, sans-serif`;
    // Only where there is room: names in each other's way say nothing.
    if (end === first || context.measureText(text).width > box.w * 1.1 || size > box.h) return;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.lineWidth = size / 4;
    context.strokeStyle = this.#colour("paper");
    context.fillStyle = this.#colour("ink");
    context.strokeText(text, box.x + box.w / 2, box.y + box.h / 2);
    context.fillText(text, box.x + box.w / 2, box.y + box.h / 2);
  }

  #drawSeats(sections: Section[], seen: Box, gap: number) {
    const draw = gap < SHAPES_FROM ? this.#dots() : this.#shapes();
    for (const { first, end } of sections) {
      for (let number = first; number < end; number++) {
        const { x, y } = this.plan.seats[number]!;
        if (x < seen.x - GAP || y < seen.y - GAP || x > seen.x + seen.w + GAP || y > seen.y + seen.h + GAP) continue;
        draw.seat(this.host.shown(number), x, y);
      }
    }
    draw.end();
  }

  /** Small squares, written as pixels: a path of fifty thousand takes half a second. */
  #dots() {
    const context = this.#context, { width, height } = this.element, layer = this.#layer;
    if (layer.width !== width || layer.height !== height) [layer.width, layer.height] = [width, height];
    const image = new ImageData(width, height), pixels = new Uint32Array(image.data.buffer);
    const { scale, left, top } = this.camera.scale, ratio = devicePixelRatio;
    const colours = Object.fromEntries(Object.entries(COLOURS).map(([shown, name]) => [shown, this.#pixel(name)])) as Record<Shown, number>;
    return {
      seat: (shown: Shown, x: number, y: number) => {
        const size = Math.max(1, Math.round(2 * DOT[shown] * scale * ratio));
        const fromX = Math.round((x * scale + left) * ratio - size / 2), fromY = Math.round((y * scale + top) * ratio - size / 2);
        for (let py = Math.max(0, fromY); py < Math.min(height, fromY + size); py++) {
          const start = py * width;
          pixels.fill(colours[shown], start + Math.max(0, Math.min(width, fromX)), start + Math.max(0, Math.min(width, fromX + size)));
        }
      },
      end: () => {
        layer.getContext("2d")!.putImageData(image, 0, 0);
        context.save();
        context.setTransform(1, 0, 0, 1, 0, 0);
        context.drawImage(layer, 0, 0);
        context.restore();
      },
    };
  }

  /** The shapes of the legend, each drawn once and then copied. */
  #shapes() {
    const context = this.#context, { scale } = this.camera.scale;
    const side = Math.ceil(GAP * scale * devicePixelRatio), size = side / scale / devicePixelRatio;
    const stamps = Object.fromEntries(Object.entries(COLOURS).map(([shown, name]) => {
      const stamp = new OffscreenCanvas(side, side), on = stamp.getContext("2d")!;
      on.scale(scale * devicePixelRatio, scale * devicePixelRatio);
      on.translate(size / 2, size / 2);
      on.fillStyle = on.strokeStyle = this.#colour(name);
      on.lineWidth = 1.4;
      on.beginPath();
      shape(on, shown as Shown);
      if (shown === "A" || shown === "M") on.fill();
      on.stroke();
      return [shown, stamp];
    })) as unknown as Record<Shown, OffscreenCanvas>;
    return {
      seat: (shown: Shown, x: number, y: number) => context.drawImage(stamps[shown], x - size / 2, y - size / 2, size, size),
      end: () => {},
    };
  }

  #drawMoving() {
    const context = this.#context, now = performance.now();
    if (this.#focused >= 0) {
      const { x, y } = this.plan.seats[this.#focused]!;
      context.strokeStyle = this.#colour("mine");
      context.lineWidth = 2;
      context.strokeRect(x - GAP / 2, y - GAP / 2, GAP, GAP);
    }
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    for (const [seat, since] of this.#shaken) {
      if (now - since > SHAKE_MS) { this.#shaken.delete(seat); continue; }
      const { x, y } = this.plan.seats[seat]!;
      context.strokeStyle = this.#colour("alarm");
      context.lineWidth = 2;
      context.beginPath();
      context.arc(x + (still ? 0 : 3 * Math.sin((now - since) / 30)), y, GAP / 2, 0, 7);
      context.stroke();
    }
    if (this.#shaken.size) this.#soon();
  }
}

/** The shapes of the legend, about the origin: circle, diamond, cross, dash. */
function shape(context: OffscreenCanvasRenderingContext2D, shown: Shown) {
  if (shown === "A" || shown === "M") {
    context.arc(0, 0, shown === "M" ? 5 : 4.2, 0, 7);
  } else if (shown === "H") {
    context.moveTo(0, -4.6); context.lineTo(4.6, 0); context.lineTo(0, 4.6); context.lineTo(-4.6, 0); context.closePath();
  } else if (shown === "S") {
    context.moveTo(-3.6, -3.6); context.lineTo(3.6, 3.6); context.moveTo(3.6, -3.6); context.lineTo(-3.6, 3.6);
  } else {
    context.moveTo(-3, 0); context.lineTo(3, 0);
  }
}

const overlap = (a: Box, b: Box) => a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;

/** Whether a place is inside a convex hull, or near its edge. */
function inside(hull: [number, number][], x: number, y: number): boolean {
  return hull.every(([ax, ay], i) => {
    const [bx, by] = hull[(i + 1) % hull.length]!;
    const long = Math.hypot(bx - ax, by - ay) || 1;
    return ((bx - ax) * (y - ay) - (by - ay) * (x - ax)) / long >= -GAP;
  });
}
