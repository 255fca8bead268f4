#!/usr/bin/env python3
"""Writes files as users have them into a folder: make.py FOLDER. Those of HDF5 come from hdf5.c.

Plain Python: the bytes of NPY, NPZ and MATLAB are written here. All files hold a driven system of two outputs
(level, temp) under one input (valve), so that what is read can be compared."""
import math
import os
import random
import struct
import sys
import zipfile
import zlib

N = 240


def simulate(rows=N, seed=1):
    """Rows of valve, level, temp."""
    draw = random.Random(seed)
    valve, level, temp, out = 0.0, 0.0, 20.0, []
    for i in range(rows):
        if i % 7 == 0:
            valve = round(draw.uniform(0, 5), 2)
        out.append((valve, round(level, 4), round(temp, 3)))
        level = 0.9 * level + 0.4 * valve + draw.gauss(0, 0.02)
        temp = 0.85 * temp + 3 + 0.5 * level + draw.gauss(0, 0.05)
    return out


def text(name, lines, encoding="utf-8", newline="\n", before=b""):
    with open(name, "wb") as file:
        file.write(before + (newline.join(lines) + newline).encode(encoding))


def comma(value):
    return str(value).replace(".", ",")


# ---- Tables ----

def tables():
    rows = simulate()
    plain = [f"{u},{y},{z}" for u, y, z in rows]
    text("plain.csv", ["u,y1,y2"] + plain)
    text("no_names.csv", plain)
    text("valve.csv", ["valve,level,temp"] + plain)
    text("action.csv", ["action_0,level,temp"] + plain)
    text("episodes.csv", ["episode,step,action,level,temp"] +
         [f"{i // 40},{i % 40},{plain[i]}" for i in range(N)])
    text("run.csv", ["run,u,level"] + [f"{i % 40 < 20:d},{rows[i][0]},{rows[i][1]}" for i in range(N)])
    text("traj_id.csv", ["traj_id,t,u,level"] +
         [f"ride-{i // 60},{i % 60 * 0.05:.2f},{rows[i][0]},{rows[i][1]}" for i in range(N)])
    text("restart.csv", ["time,u,level"] + [f"{i % 80 * 0.1:.1f},{rows[i][0]},{rows[i][1]}" for i in range(N)])
    text("german.csv", ["Zeit [s];Füllstand [mm];Ventil (V);u"] +
         [f"{comma(i / 10)};{grouped(1200 + 10 * y)};{comma(z)};{comma(u)}" for i, (u, y, z) in enumerate(rows)],
         "latin-1", "\r\n")
    text("bom.csv", ["u,y"] + [f"{u},{y}" for u, y, _ in rows], before=b"\xef\xbb\xbf")
    text("unicode.txt", ["u\ty"] + [f"{u}\t{y}" for u, y, _ in rows], "utf-16-le", "\r\n", b"\xff\xfe")
    text("thousands.csv", ["u,y"] + [f'{u},"{1200 + 100 * y:,.2f}"' for u, y, _ in rows])
    text("units_row.csv", ["Time,Level,Valve", "s,mm,V"] +
         [f"{i * 0.5},{y},{u}" for i, (u, y, _) in enumerate(rows)])
    text("labview.csv", ["Measured by rig 3", "Operator: nobody", "", "Time (s)\tLevel (mm)\tinput (V)"] +
         [f"{i * 0.5}\t{y}\t{u}" for i, (u, y, _) in enumerate(rows)])
    text("savetxt.txt", ["# t u y"] + [f"{i * 0.01:.18e} {u:.18e} {y:.18e}" for i, (u, y, _) in enumerate(rows)])
    text("dates.csv", ["timestamp,u,level [mm]"] +
         [f"2024-01-31 12:{i // 60:02d}:{i % 60:02d},{rows[i][0]},{rows[i][1]}" for i in range(N)])
    text("date_and_time.csv", ["Date;Time;u;level"] +
         [f"31.01.2024;23:{58 + i // 60 if i < 120 else i // 60 - 2:02d}:{i % 60:02d};{comma(rows[i][0])};"
          f"{comma(rows[i][1])}" if i < 120 else
          f"01.02.2024;00:{i // 60 - 2:02d}:{i % 60:02d};{comma(rows[i][0])};{comma(rows[i][1])}"
          for i in range(N)])
    text("epoch_ms.csv", ["timestamp,u,y"] +
         [f"{1706702400000 + 250 * i},{rows[i][0]},{rows[i][1]}" for i in range(N)])
    text("gaps.csv", ["time_ms,u,y"] +
         [f"{20 * i},{rows[i][0]},{rows[i][1]}" for i in range(N) if i % 50 not in (10, 11)])
    draw, at, lines = random.Random(3), 0.0, []
    for u, y, _ in rows:
        lines.append(f"{at:.4f},{u},{y}")
        at += draw.expovariate(10)
    text("irregular.csv", ["time,u,y"] + lines)
    text("rates.csv", ["time,u,fast,slow"] +
         [f"{i * 0.1:.1f},{rows[i][0]},{rows[i][1]},{rows[i][2] if i % 5 == 0 else ''}" for i in range(N)])
    text("empty_cells.csv", ["u,y1,y2"] +
         [f"{u},{y},{'' if i % 20 == 3 else z}" for i, (u, y, z) in enumerate(rows)])
    text("na.csv", ["u,y"] + [f"{u},{'NA' if i % 20 == 3 else 'null' if i % 20 == 4 else y}"
                             for i, (u, y, _) in enumerate(rows)])
    text("mark.csv", ["u,y"] + [f"{u},{-999 if i % 20 == 3 else y}" for i, (u, y, _) in enumerate(rows)])
    text("quotes.csv", ['u,"level ""raw"", mm",other'] + plain)
    text("error.csv", ["u,level,temp"] + [f"{u},{'err' if i == 17 else y},{z}" for i, (u, y, z) in enumerate(rows)])


def grouped(value):
    return f"{value:,.1f}".replace(",", " ").replace(".", ",").replace(" ", ".")


# ---- Arrays ----

def npy(kind, shape, values):
    """The bytes of an NPY file; kind is a character of struct and NumPy's name of it."""
    code, name = kind
    header = str({"descr": name, "fortran_order": False, "shape": tuple(shape)}).encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return (b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header +
            struct.pack(f"<{len(values)}{code}", *values))


F4, U1, I8 = ("f", "<f4"), ("B", "|u1"), ("q", "<i8")


def npz(name, **arrays):
    with zipfile.ZipFile(name, "w") as file:
        for key, value in arrays.items():
            file.writestr(key + ".npy", value)


def flat(rows, columns):
    return [row[k] for row in rows for k in columns]


def arrays():
    rows = simulate()
    npz("list.npz", **{f"arr_{k}": npy(F4, (30 + 10 * k, 2), flat(rows[:30 + 10 * k], (1, 2))) for k in range(5)})
    npz("two.npz", arr_0=npy(F4, (N, 2), flat(rows, (1, 2))), arr_1=npy(F4, (N, 1), flat(rows, (0,))))
    npz("fs.npz", x=npy(F4, (N, 2), flat(rows, (1, 2))), u=npy(F4, (N, 1), flat(rows, (0,))),
        fs=npy(("d", "<f8"), (), [50.0]))
    with open("switches.npy", "wb") as file:
        file.write(npy(U1, (12, 20, 5), [i * i % 7 % 2 for i in range(1200)]))
    with open("counts.npy", "wb") as file:
        file.write(npy(U1, (12, 20, 5), [i * i % 31 for i in range(1200)]))
    with open("pictures.npy", "wb") as file:
        file.write(npy(U1, (12, 20, 4, 4), [i * i % 256 for i in range(12 * 20 * 16)]))
    columns = [row[k] for k in (1, 2) for row in rows]
    with open("transposed.npy", "wb") as file:
        file.write(npy(F4, (2, N), columns))
    npz("objects.npz", x=b"\x93NUMPY\x01\x00v\x00" +
        b"{'descr': '|O', 'fortran_order': False, 'shape': (3,), }".ljust(117) + b"\n" + b"\x80\x04.")


# ---- MATLAB 5 ----

def element(kind, data):
    return struct.pack("<II", kind, len(data)) + data + b"\0" * (-len(data) % 8)


def variable(name, shape, values):
    body = (element(6, struct.pack("<II", 6, 0)) + element(5, struct.pack(f"<{len(shape)}i", *shape)) +
            element(1, name.encode()) + element(9, struct.pack(f"<{len(values)}d", *values)))
    return element(14, body)


def matlab(name, variables, compress):
    head = b"MATLAB 5.0 MAT-file, written by a test".ljust(124) + struct.pack("<HH", 0x0100, 0x4D49)
    with open(name, "wb") as file:
        file.write(head)
        for each in variables:
            packed = zlib.compress(each)
            file.write(struct.pack("<II", 15, len(packed)) + packed if compress else each)


def matlab_files():
    rows = simulate()
    x = [row[k] for k in (1, 2) for row in rows]  # Fortran order of [N, 2]
    u = [row[0] for row in rows]
    for name, compress in (("v6.mat", False), ("v7.mat", True)):
        matlab(name, [variable("y", (N, 2), x), variable("u", (1, N), u), variable("Ts", (1, 1), [0.2])], compress)


# ---- What is refused ----

def refused():
    for name, begin in (("lerobot.parquet", b"PAR1\x15\x04"), ("frame.feather", b"ARROW1\0\0"),
                        ("old.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"), ("data.csv.gz", b"\x1f\x8b\x08\0"),
                        ("data.pkl", b"\x80\x04\x95\x10"), ("table.sqlite", b"SQLite format 3\0"),
                        ("rig.tdms", b"TDSm\x0e\0\0\0"), ("drive.bag", b"#ROSBAG V2.0\n"),
                        ("clip.mp4", b"\0\0\0\x18ftypmp42")):
        with open(name, "wb") as file:
            file.write(begin + bytes(range(256)) * 4)
    for name, entry in (("book.xlsx", "xl/workbook.xml"), ("batch.pt", "archive/data.pkl")):
        with zipfile.ZipFile(name, "w") as file:
            file.writestr("[Content_Types].xml" if name == "book.xlsx" else "archive/version", "3")
            file.writestr(entry, "...")
    text("dates_us.csv", ["date,u,y"] + [f"1/{1 + i // 24}/2024 {i % 12 + 1}:00 PM,{i},{math.sin(i)}" for i in range(90)])
    text("back.csv", ["time,u,y"] + [f"{i if i != 50 else 20},{i % 7},{math.sin(i):.4f}" for i in range(90)])


if __name__ == "__main__":
    os.makedirs(sys.argv[1], exist_ok=True)
    os.chdir(sys.argv[1])
    tables()
    arrays()
    matlab_files()
    refused()
