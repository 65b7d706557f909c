// Where seats are: a layout's geometry file, in units of which neighbours are twelve apart.

export type Letter = "A" | "H" | "S" | "B";
export type Seat = { seatId: string; row: string; number: string; x: number; y: number; zone: string; accessible: boolean; section: number };
export type Box = { x: number; y: number; w: number; h: number };
export type Section = { name: string; first: number; end: number; box: Box; hull: [number, number][] };
type File = { sections: { name: string; seats: Omit<Seat, "section">[] }[] };

/** The usual distance of neighbours. */
export const GAP = 12;

export class Plan {
  readonly seats: Seat[] = [];
  readonly sections: Section[] = [];
  readonly box: Box;
  /** What each seat shows; not known yet: not for sale. */
  readonly letters: Letter[];
  /** Whether the server has said yet what seats show. */
  known = false;
  readonly #numbers = new Map<string, number>();

  constructor(file: File) {
    const unit = GAP / usualGap(file);
    for (const { name, seats } of file.sections) {
      const first = this.seats.length;
      for (const seat of seats) this.seats.push({ ...seat, x: seat.x * unit, y: seat.y * unit, section: this.sections.length });
      const own = this.seats.slice(first);
      this.sections.push({ name, first, end: this.seats.length, box: boxOf(own), hull: hullOf(own) });
    }
    this.seats.forEach((seat, number) => this.#numbers.set(seat.seatId, number));
    this.letters = new Array<Letter>(this.seats.length).fill("B");
    this.box = boxOf(this.seats);
  }

  static async load(url: string): Promise<Plan> {
    return new Plan(await (await fetch(url)).json());
  }

  number(seatId: string): number | undefined {
    return this.#numbers.get(seatId);
  }

  free(section: Section): number {
    let free = 0;
    for (let seat = section.first; seat < section.end; seat++) if (this.letters[seat] === "A") free++;
    return free;
  }

  /** The seat that a person means who goes from one in a direction, among some. */
  towards(from: number, dx: number, dy: number, among: Section[]): number | null {
    const here = this.seats[from];
    let best: number | null = null, nearest = Infinity;
    if (!here) return best;
    for (const { first, end } of among) {
      for (let number = first; number < end; number++) {
        const seat = this.seats[number]!;
        const along = (seat.x - here.x) * dx + (seat.y - here.y) * dy;
        const aside = Math.abs((seat.x - here.x) * dy) + Math.abs((seat.y - here.y) * dx);
        if (along > 0 && along + 3 * aside < nearest) { best = number; nearest = along + 3 * aside; }
      }
    }
    return best;
  }

  /** The seat at a place, if there is one. */
  at(x: number, y: number): number | null {
    let best: number | null = null, nearest = (GAP * 0.6) ** 2;
    for (const { first, end, box } of this.sections) {
      if (x < box.x || y < box.y || x > box.x + box.w || y > box.y + box.h) continue;
      for (let number = first; number < end; number++) {
        const seat = this.seats[number]!;
        const far = (seat.x - x) ** 2 + (seat.y - y) ** 2;
        if (far < nearest) { best = number; nearest = far; }
      }
    }
    return best;
  }
}

/** The median distance of neighbours in a row: units differ from plan to plan. */
function usualGap(file: File): number {
  const gaps: number[] = [];
  for (const { seats } of file.sections) {
    for (let i = 1; i < seats.length; i++) {
      const [a, b] = [seats[i - 1]!, seats[i]!];
      const gap = Math.hypot(b.x - a.x, b.y - a.y);
      if (a.row === b.row && gap > 0) gaps.push(gap);
    }
  }
  gaps.sort((a, b) => a - b);
  return gaps[gaps.length >> 1] ?? 1;
}

function boxOf(seats: { x: number; y: number }[]): Box {
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
  for (const { x, y } of seats) {
    left = Math.min(left, x); right = Math.max(right, x);
    top = Math.min(top, y); bottom = Math.max(bottom, y);
  }
  return seats.length ? { x: left - GAP, y: top - GAP, w: right - left + 2 * GAP, h: bottom - top + 2 * GAP } : { x: 0, y: 0, w: 1, h: 1 };
}

/** The convex hull (Andrew's monotone chain). */
function hullOf(seats: { x: number; y: number }[]): [number, number][] {
  const points = seats.map(({ x, y }): [number, number] => [x, y]).sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const half = (points: [number, number][]) => {
    const chain: [number, number][] = [];
    for (const point of points) {
      for (;;) {
        const [a, b] = [chain.at(-2), chain.at(-1)];
        if (!a || !b || (b[0] - a[0]) * (point[1] - a[1]) - (b[1] - a[1]) * (point[0] - a[0]) > 0) break;
        chain.pop();
      }
      chain.push(point);
    }
    return chain.slice(0, -1);
  };
  const hull = [...half(points), ...half(points.reverse())];
  return hull.length ? hull : points;
}
