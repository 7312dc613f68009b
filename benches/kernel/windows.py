"""A picture of congestion windows over time: a panel for each controller, a line for each world."""

COLOURS = {"simulator": "#1b6ca8", "Comity's TCP": "#c0392b", "Linux": "#2e7d32"}
WIDTH, HEIGHT = 380, 190
LEFT, TOP, GAP, LEGEND = 50, 26, 40, 24


def step(highest, ticks=4):
    """A round distance between marks of an axis from 0 to `highest`.

    >>> step(15), step(98), step(340)
    (5, 20, 100)
    """
    power = 10 ** (len(str(int(highest))) - 2)
    return next(size * power for size in (1, 2, 5, 10, 20, 50) if highest / (size * power) <= ticks + 1)


def line(points, colour, right, top):
    """A polyline through points of the panel, whose axes end at `right` and `top`.

    >>> line([(0, 0), (10, 50)], "red", 10, 50)
    '<polyline points="0,190 380,0" fill="none" stroke="red" stroke-width="1.2"/>'
    """
    places = " ".join(f"{round(x / right * WIDTH)},{round((1 - y / top) * HEIGHT)}" for x, y in points)
    return f'<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="1.2"/>'


def panel(title, worlds):
    """A panel with the windows in kB over seconds of each world."""
    points = [point for line_of in worlds.values() for point in line_of]
    right, top = max(x for x, _ in points), max(y for _, y in points) * 1.05
    drawn = [f'<text x="0" y="-8" font-weight="bold">{title}</text>']
    drawn.append(f'<rect width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#999"/>')
    for mark in range(0, int(right) + 1, step(right)):
        drawn.append(f'<text x="{mark / right * WIDTH:.0f}" y="{HEIGHT + 14}" text-anchor="middle">{mark} s</text>')
    for mark in range(0, int(top) + 1, step(top)):
        drawn.append(f'<text x="-5" y="{(1 - mark / top) * HEIGHT + 4:.0f}" text-anchor="end">{mark}</text>')
    return drawn + [line(line_of, COLOURS[world], right, top) for world, line_of in worlds.items()]


def picture(panels):
    """The picture of panels, two in a row, by title."""
    width = 2 * (LEFT + WIDTH) + 20
    height = LEGEND + (len(panels) + 1) // 2 * (TOP + HEIGHT + GAP)
    drawn = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" ']
    drawn[0] += 'font-size="11">'
    drawn.append(f'<rect width="{width}" height="{height}" fill="white"/>')
    for place, (world, colour) in enumerate(COLOURS.items()):
        drawn.append(f'<text x="{LEFT + place * 110}" y="15" fill="{colour}">{world}</text>')
    drawn.append(f'<text x="{LEFT + 330}" y="15">congestion window, kB</text>')
    for place, (title, worlds) in enumerate(panels.items()):
        x, y = LEFT + place % 2 * (WIDTH + LEFT), LEGEND + TOP + place // 2 * (TOP + HEIGHT + GAP)
        drawn += [f'<g transform="translate({x},{y})">', *panel(title, worlds), "</g>"]
    return "\n".join([*drawn, "</svg>"]) + "\n"
