/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An application with a native port: every frame goes back to where it came from.
 * Build: cc -o echo echo.c $(pkg-config --cflags --libs libdray)
 * Run in a function whose chain file gives it a port with `face: native`: echo f1u
 */
#include <dray.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { BURST = 32, MAC = 6 };

static volatile sig_atomic_t ended;

static void end(int signal)
{
	(void)signal;
	ended = 1;
}

/* A frame's destination becomes its source. The peer may change the frame meanwhile: it can spoil its own frame, and nothing else. */
static void turn(struct dray_pkt *pkt)
{
	unsigned char mac[2 * MAC], *frame = pkt->data;

	if (pkt->length < sizeof(mac))
		return;
	memcpy(mac, frame, sizeof(mac));
	memcpy(frame, mac + MAC, MAC);
	memcpy(frame + MAC, mac, MAC);
}

/* Tell what happens to the port: the peer comes and goes, and the port stays. */
static void tell(struct dray_port *port)
{
	struct dray_event event;

	while (dray_events(port, &event, 1) == 1)
		fprintf(stderr, "echo: event %u, generation %u: %s\n", event.type, event.generation, dray_strerror(event.error));
}

static void serve(struct dray_port *port)
{
	struct dray_pkt pkts[BURST];
	unsigned n, sent;

	while (!ended) {
		if (dray_wait(port, 0, DRAY_WAIT_RX | DRAY_WAIT_EVENT, 1000) & DRAY_WAIT_EVENT)
			tell(port);
		n = dray_rx_burst(port, 0, pkts, BURST);
		for (unsigned i = 0; i < n; i++)
			turn(&pkts[i]);
		sent = dray_tx_burst(port, 0, pkts, n); /* what was received is copied once on its way back */
		dray_release(pkts + sent, n - sent);	/* no room at the peer: these are lost */
	}
}

int main(int argc, char **argv)
{
	struct dray_options options = {.size = sizeof(options), .mode = DRAY_MODE_ADAPTIVE, .queues = 1};
	struct dray_port *port;
	int error;

	if (argc != 2) {
		fprintf(stderr, "usage: echo PORT\n");
		return 2;
	}
	signal(SIGINT, end);
	signal(SIGTERM, end);
	error = dray_open(argv[1], &options, &port);
	if (error < 0) {
		fprintf(stderr, "echo: port %s: %s\n", argv[1], dray_strerror(error));
		return 1;
	}
	serve(port);
	return dray_close(port) < 0;
}
