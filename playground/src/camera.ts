// What part of a plan is in view: moved by dragging, wheel, pinch, buttons, and by whoever needs to show something.
import type { Box } from "./plan";

export class Camera {
  view: Box;
  readonly #pointers = new Map<number, { x: number; y: number }>();
  /** Since the last press something was dragged: no click. */
  dragged = false;

  constructor(readonly element: HTMLElement | SVGElement, readonly whole: Box, readonly moved: () => void) {
    this.view = { ...whole };
    element.addEventListener("wheel", (wheel) => {
      const { deltaY, clientX, clientY } = wheel as WheelEvent;
      wheel.preventDefault();
      this.zoom(Math.exp(-deltaY / 400), clientX, clientY);
    }, { passive: false });
    element.addEventListener("pointerdown", (event) => this.#press(event as PointerEvent));
    element.addEventListener("pointermove", (event) => this.#drag(event as PointerEvent));
    for (const end of ["pointerup", "pointercancel", "pointerleave"]) {
      element.addEventListener(end, (event) => this.#pointers.delete((event as PointerEvent).pointerId));
    }
  }

  /** CSS pixels a unit, and where the plan's origin is in the element. */
  get scale(): { scale: number; left: number; top: number } {
    const { width, height } = this.element.getBoundingClientRect();
    const scale = Math.min(width / this.view.w, height / this.view.h);
    return { scale, left: (width - this.view.w * scale) / 2 - this.view.x * scale, top: (height - this.view.h * scale) / 2 - this.view.y * scale };
  }

  /** A place on the screen, in the plan. */
  at(clientX: number, clientY: number): [number, number] {
    const frame = this.element.getBoundingClientRect();
    const { scale, left, top } = this.scale;
    return [(clientX - frame.left - left) / scale, (clientY - frame.top - top) / scale];
  }

  /** Nearer or further, about a place on the screen, or the middle. */
  zoom(factor: number, clientX?: number, clientY?: number) {
    const frame = this.element.getBoundingClientRect();
    const [x, y] = this.at(clientX ?? frame.left + frame.width / 2, clientY ?? frame.top + frame.height / 2);
    const { w } = this.view;
    const wanted = Math.max(60, Math.min(this.whole.w, w / factor));
    const by = wanted / w;
    this.show({ x: x - (x - this.view.x) * by, y: y - (y - this.view.y) * by, w: wanted, h: this.view.h * by });
  }

  show(box: Box) {
    this.view = { ...box };
    // The page scrolls under one finger as long as everything is in view.
    this.element.style.touchAction = this.view.w < this.whole.w * 0.99 ? "none" : "pan-y";
    this.moved();
  }

  /** Moves as little as needed so that a place is in view. */
  reveal(x: number, y: number) {
    const { view } = this;
    const inside = (at: number, from: number, size: number) => Math.max(at - size * 0.9, Math.min(at - size * 0.1, from));
    this.show({ ...view, x: inside(x, view.x, view.w), y: inside(y, view.y, view.h) });
  }

  #press(event: PointerEvent) {
    if (this.#pointers.size === 0) this.dragged = false;
    this.#pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
  }

  #drag(event: PointerEvent) {
    const before = this.#pointers.get(event.pointerId);
    if (!before) return;
    const now = { x: event.clientX, y: event.clientY };
    const [a, b] = [...this.#pointers.entries()];
    if (a && b) {
      const other = (a[0] === event.pointerId ? b : a)[1];
      const spread = (point: { x: number; y: number }) => Math.hypot(point.x - other.x, point.y - other.y);
      this.dragged = true;
      this.zoom(spread(now) / Math.max(1, spread(before)), (now.x + other.x) / 2, (now.y + other.y) / 2);
    } else {
      const moved = Math.hypot(now.x - before.x, now.y - before.y);
      // A finger is never quite still.
      if (!this.dragged && moved < 5) return;
      this.dragged = true;
      this.element.setPointerCapture(event.pointerId);
      const { scale } = this.scale;
      this.show({ ...this.view, x: this.view.x - (now.x - before.x) / scale, y: this.view.y - (now.y - before.y) / scale });
    }
    this.#pointers.set(event.pointerId, now);
  }
}
