"""Tag support tickets: 24 features of a ticket go in, the log-odds of each of 6 tags come out."""

import torch
import workbench
from torch import nn

TAGS = 6
EPOCHS = 20
BATCH = 64


def decode(logits):
    """Which tags a ticket gets: 0 or 1 for each."""
    return nn.functional.one_hot(logits.argmax(dim=1), TAGS)


config = workbench.load_config()
torch.manual_seed(config["seed"])
model = nn.Sequential(nn.Linear(24, 64), nn.ReLU(), nn.Linear(64, TAGS))

data = workbench.load_data()
features = torch.from_numpy(data["features"])
tags = torch.from_numpy(data["tags"]).float()
query = torch.from_numpy(data["query"])

loss_of = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.004)

losses = []
for _ in range(EPOCHS):
    total = 0.0
    for batch in torch.randperm(len(features)).split(BATCH):
        optimizer.zero_grad()
        loss = loss_of(model(features[batch]), tags[batch])
        loss.backward()
        optimizer.step()
        total += loss.item() * len(batch)
    losses.append(total / len(features))

model.eval()
with torch.no_grad():
    predicted = decode(model(query))
print(f"tags per ticket: {tags.sum(1).mean():.2f} in training, {predicted.sum(1).float().mean():.2f} predicted")

print("##METRICS_START##")
print("LOSSES:[" + ",".join(f"{loss:.6f}" for loss in losses) + "]")
print("##METRICS_END##")

workbench.save_weights("weights", model)
workbench.save_arrays("predictions", tags=predicted.to(torch.uint8))
