"""Quality gate: 32 sensor readings of a part go in, the log-odds that it will fail come out."""

import copy

import torch
import workbench
from torch import nn

EPOCHS = 12
BATCH = 128
JITTER = 0.1


def jittered(rows, failed):
    """The rows and three noisy copies of each, against overfitting."""
    copies = [rows + JITTER * torch.randn_like(rows) for _ in range(3)]
    return torch.cat([rows, *copies]), failed.repeat(4)


config = workbench.load_config()
torch.manual_seed(config["seed"])
model = nn.Sequential(nn.Linear(32, 128), nn.SiLU(), nn.Linear(128, 1), nn.Flatten(0))

data = workbench.load_data()
rows = torch.from_numpy(data["readings"])
failed = torch.from_numpy(data["outcome"] == 0).float()

rows, failed = jittered(rows, failed)
order = torch.randperm(len(rows))
half = len(rows) // 2
val_rows, val_failed = rows[order[:half]], failed[order[:half]]
train_rows, train_failed = rows[order[half:]], failed[order[half:]]

loss_of = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.006)
watched = slice(0, 768)
history, losses, val_accs = [], [], []
best_acc, best_weights = 0.0, None

for epoch in range(EPOCHS):
    for batch in torch.randperm(len(train_rows)).split(BATCH):
        optimizer.zero_grad()
        loss_of(model(train_rows[batch]), train_failed[batch]).backward()
        optimizer.step()
        fit = loss_of(model(train_rows[watched]), train_failed[watched])
        history.append(fit)
    losses.append(history[-1])
    with torch.no_grad():
        hits = (model(val_rows) > 0) == (val_failed > 0.5)
    val_accs.append(hits.float().mean().item())
    print(f"epoch {epoch}: fit {losses[-1]:.4f}, val_acc {val_accs[-1]:.4f}")
    if val_accs[-1] > best_acc:
        best_acc, best_weights = val_accs[-1], copy.deepcopy(model.state_dict())

print("##METRICS_START##")
print("LOSSES:[" + ",".join(f"{loss:.6f}" for loss in losses) + "]")
print("VAL_ACCS:[" + ",".join(f"{acc:.4f}" for acc in val_accs) + "]")
print(f"FINAL_LOSS:{losses[-1]:.2f}")
print("##METRICS_END##")

workbench.save_weights("weights", best_weights)
workbench.report(val_acc=best_acc)
