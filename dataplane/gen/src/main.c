/* SPDX-License-Identifier: Apache-2.0 */
/* draygen: traffic generator, sink and reflector. */
#include <stdio.h>

#include "run.h"

int main(int argc, char **argv)
{
	static int (*const roles[])(const struct options *, struct io *) = {
		[ROLE_SINK] = role_sink, [ROLE_SEND] = role_send, [ROLE_PING] = role_ping};
	struct options options;
	struct io_error error;
	struct io *io;
	int ret = options_read(argc, argv, &options);

	if (ret)
		return ret > 0 ? EXIT_DONE : EXIT_USAGE;
	if (options.role == ROLE_LOOP)
		return role_loop(&options);
	io = io_open(&options, &error);
	if (!io || (io_sends(&options) && !run_await(&options, &io, 1, &error))) {
		fprintf(stderr, "draygen: %s\n", error.text);
		io_exit_status = EXIT_ERROR;
		if (io)
			io_close(io);
		return EXIT_ERROR;
	}
	run_catch_signals();
	ret = roles[options.role](&options, io);
	io_exit_status = ret;
	io_close(io);
	return ret;
}
