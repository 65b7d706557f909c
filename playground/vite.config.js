import { defineConfig } from "vite";

// Served by the server under /playground/, out of its binary: nothing is loaded from elsewhere.
export default defineConfig({
  base: "/playground/",
  build: {
    outDir: "dist",
    emptyOutDir: true,
    chunkSizeWarningLimit: 8000,
    sourcemap: false,
    rollupOptions: { input: ["index.html", "demo.html"] },
  },
});
